/**
 * What the program `plugboard` and the test kit use of the host. It is not for plugins: it changes
 * without notice, and only packages of the same version work together.
 */
export { systemClock, systemIds } from './host/base/ambient.js';
export { ReloadError } from './host/base/errors.js';
export { KERNEL } from './host/base/kernel-package.js';
export { ignoreFilesIn, placeOf } from './host/base/place.js';
export { beginCall, onCalls, runningCalls } from './host/base/plugin-calls.js';
export { formatPath } from './host/base/problem.js';
export { compose } from './host/compose.js';
export type { Entry } from './host/configuration/entries.js';
export { createLogger } from './host/log/log.js';
export { logWritten } from './host/log/standard-error.js';
export { OptionSchema } from './host/options/schema.js';
export { registerEntry } from './host/registration/register.js';
export { Registry } from './host/registration/registry.js';
export { changesBetween } from './host/reload/changes.js';
export { describeChange } from './host/reload/describe-change.js';
export { layout } from './layout.js';
