export { typeOfEvent } from './events/json-text.js';
export * from './events/outcome.js';
export * from './events/response-encoder.js';
export * from './events/response-object.js';
export * from './items/input-messages.js';
export { connectionForTextOnly } from './items/input-parts.js';
