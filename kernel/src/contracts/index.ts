/**
 * Messages, events, sessions, and every type that the extension points refer to. `@plugboard/kernel` exports what a plugin needs
 * first; this module exports the rest.
 */
export type { Timer } from '../host/base/ambient.js';
export { Budget, type BudgetOptions, type BudgetReport, heapLimit } from '../host/base/budget.js';
export type { HostErrorCode } from '../host/base/errors.js';
export { nearest, suggestion } from '../host/base/nearest.js';
export type { EntryReport, EntryStatus, HostPhase } from '../host/lifecycle/status.js';
export type { LogSink } from '../host/log/log.js';
export type { RedactorOptions } from '../host/log/redactor.js';
export type { Environment } from '../host/options/variables.js';
export type { Budgets } from '../host/plugin/budgets.js';
export type { Discipline } from '../host/plugin/extension-point.js';
export { API_VERSION, PLUGIN_BRAND } from '../host/plugin/plugin.js';
export * from './agent-runtime.js';
export * from './auth-provider.js';
export * from './conversation-id.js';
export * from './conversation-store.js';
export * from './conversations.js';
export * from './document-store.js';
export * from './event.js';
export * from './extra.js';
export * from './failure.js';
export * from './idempotency-store.js';
export * from './interceptor.js';
export * from './message.js';
export * from './model-connector.js';
export { parseJson } from './parse-json.js';
export { type PeekResult, peek } from './peek.js';
export * from './pending-tool-calls.js';
export * from './principal.js';
export * from './session-key.js';
export * from './session-store.js';
export * from './target.js';
export * from './tool-images.js';
export * from './tool-source.js';
export { Transcript } from './transcript.js';
export * from './transport.js';
export * from './turn.js';
export * from './usage.js';
