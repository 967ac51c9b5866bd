import 'reflect-metadata';

export { inject, injectable, singleton } from 'tsyringe';
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
export * from './contracts/index.js';
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
