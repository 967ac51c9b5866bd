import 'reflect-metadata';

export { inject, injectable, singleton } from 'tsyringe';
export * from './agent/conversation-id.js';
export * from './agent/event.js';
export { failureOf } from './agent/failure.js';
export * from './agent/message.js';
export { type Peeked, peek } from './agent/peek.js';
export * from './agent/points/index.js';
export * from './agent/principal.js';
export { sealed } from './agent/sealed.js';
export * from './agent/sessions/session-key.js';
export { showsToolImages } from './agent/transcript.js';
export * from './agent/turn.js';
export * from './agent/usage.js';
export {
  type Command,
  type CommandAction,
  type CommandArguments,
  CommandError,
  type CommandFamily,
  type CommandOption,
  Commands,
  type CommandTerminal,
  UsageError,
} from './cli/command.js';
export type { Clock, IdSource, Timer } from './host/ambient.js';
export { type AuditEvent, audit } from './host/audit.js';
export { parseDuration } from './host/duration.js';
export * from './host/extension-point.js';
export type { Logger } from './host/log.js';
export { nearest, suggestion } from './host/nearest.js';
export * from './host/plugin.js';
export type { Infer, JsonSchema } from './host/schema-types.js';
export { parseSize } from './host/size.js';
export type { EntryReport, EntryStatus, HostPhase, HostView } from './host/status.js';
export * from './host/tokens.js';
