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
export { type ComposeOptions, compose, type EntryConfig, type SectionConfig, type ServerConfig } from './compose.js';
export * from './contracts/index.js';
export type { Clock, IdSource, Timer } from './host/base/ambient.js';
export { ConfigError, HostError, type HostErrorCode, PluginError, StartError } from './host/base/errors.js';
export { nearest, suggestion } from './host/base/nearest.js';
export type { EntryReport, EntryStatus, HostPhase, HostView } from './host/lifecycle/status.js';
export { audit } from './host/log/audit.js';
export type { Logger } from './host/log/log.js';
export { type CredentialShapes, createRedactor, type RedactorOptions } from './host/log/redactor.js';
export { parseDuration } from './host/options/duration.js';
export type { Infer, JsonSchema } from './host/options/schema-types.js';
export { parseSize } from './host/options/size.js';
export * from './host/plugin/extension-point.js';
export * from './host/plugin/plugin.js';
export * from './host/registration/injection.js';
export type { Server } from './host/server.js';
