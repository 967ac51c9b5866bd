export { typeOfEvent } from './events/json-text.js';
export * from './events/outcome.js';
export * from './events/response-encoder.js';
export * from './events/response-object.js';
