/**
 * What the program `plugboard` and the test kit use of the host. It is not for plugins: it changes
 * without notice, and only packages of the same version work together.
 */
export type { ServerConfig } from './compose.js';
export type { Command, CommandOption } from './contracts/commands/command.js';
export { systemClock, systemIds } from './host/base/ambient.js';
export { hostError, PluginError, packageName, ReloadError, reasonOf } from './host/base/errors.js';
export { KERNEL } from './host/base/kernel-package.js';
export { ignoreFilesIn, placeOf } from './host/base/place.js';
export { beginCall, CALL_CHANNELS, type PluginCall } from './host/base/plugin-calls.js';
export { formatPath } from './host/base/problem.js';
export { type ComposeOptions, compose } from './host/compose.js';
export { commonSchema } from './host/configuration/entries.js';
export type { FileLayout, SectionLayout } from './host/configuration/file-layout.js';
export { LOG_SCHEMA } from './host/configuration/log-settings.js';
export type { HostServer } from './host/host-server.js';
export type { PluginInfo } from './host/inspection.js';
export { createLogger, type LogSink } from './host/log/log.js';
export { logWritten, standardError } from './host/log/standard-error.js';
export { DURATION_PATTERN } from './host/options/duration.js';
export { OptionSchema } from './host/options/schema.js';
export { SIZE_PATTERN } from './host/options/size.js';
export type { Environment } from './host/options/variables.js';
export type { Diagnosis, ModuleLocation } from './host/plugin/diagnosis.js';
export type { LoadedPlugin } from './host/plugin/loader.js';
export { packageOf, readManifest } from './host/plugin/manifest.js';
export { API_VERSION, PLUGIN_BRAND, type PluginDefinition } from './host/plugin/plugin.js';
export { updateOfKernel } from './host/plugin/server-packages.js';
export { registerEntry } from './host/registration/register.js';
export { Registry } from './host/registration/registry.js';
export { type ConfigChange, type ConfigImage, changesBetween } from './host/reload/changes.js';
export type { ReloadResult } from './host/server.js';
export { layout } from './layout.js';
