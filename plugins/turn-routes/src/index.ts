export * from './estimate-tokens.js';
export * from './fingerprints.js';
export * from './headers.js';
export * from './ignored-params.js';
export * from './peek.js';
export * from './request-headers.js';
export * from './turn-log-fields.js';
export * from './turn-stream.js';
