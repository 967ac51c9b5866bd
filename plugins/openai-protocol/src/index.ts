export * from './errors.js';
export * from './format-error.js';
export * from './ignored-params.js';
export * from './request-errors.js';
export * from './request-fields.js';
export * from './request-metadata.js';
export * from './resolve-agent.js';
export * from './session-key.js';
export { httpErrorOf } from './turn-failure.js';
