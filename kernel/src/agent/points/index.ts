export * from './agent-runtime.js';
export * from './auth-provider.js';
export * from './idempotency-store.js';
export * from './interceptor.js';
export * from './model-connector.js';
export * from './session-store.js';
export * from './tool-source.js';
export * from './transport.js';
