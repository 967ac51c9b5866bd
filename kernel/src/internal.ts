/**
 * What the program `plugboard` and the test kit use of the host. It is not for plugins: it changes
 * without notice, and only packages of the same version work together.
 */
export type { ServerConfig } from './compose.js';
export type { Command, CommandOption } from './contracts/commands/command.js';
export { systemClock, systemIds } from './host/base/ambient.js';
export { PluginError, ReloadError } from './host/base/errors.js';
export { KERNEL } from './host/base/kernel-package.js';
export { ignoreFilesIn, placeOf } from './host/base/place.js';
export { beginCall, onCalls, runningCalls } from './host/base/plugin-calls.js';
export { formatPath } from './host/base/problem.js';
export { compose } from './host/compose.js';
export type { Entry } from './host/configuration/entries.js';
export { createLogger, type LogSink } from './host/log/log.js';
export { logWritten } from './host/log/standard-error.js';
export { OptionSchema } from './host/options/schema.js';
export type { Environment } from './host/options/variables.js';
export { API_VERSION, PLUGIN_BRAND, type PluginDefinition } from './host/plugin/plugin.js';
export { registerEntry } from './host/registration/register.js';
export { Registry } from './host/registration/registry.js';
export { type ConfigImage, changesBetween } from './host/reload/changes.js';
export { describeChange } from './host/reload/describe-change.js';
export type { PluginInfo, ReloadResult } from './host/server.js';
export { layout } from './layout.js';
