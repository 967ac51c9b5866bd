import { isAbsolute } from 'node:path';
import { type Fault, fault } from '../base/errors.js';
import { KERNEL } from '../base/kernel-package.js';
import { type ConfigPath, formatProblem, type PluginIdentity } from '../base/problem.js';
import { modifiedAt } from '../plugin/loader.js';
import { packageOf } from '../plugin/manifest.js';
import type { ConfigSource } from './config-source.js';
import type { LoadedEntry } from './entry.js';

/** Lists what works but should be changed: deprecations, and second copies of this package. */
export function warningsOf(entries: readonly LoadedEntry[], source: ConfigSource): readonly string[] {
  return entries.flatMap((entry) => {
    const { plugin, path, optionsPath, options } = entry;
    if (plugin === undefined) return [];
    const { kernelCopy: copy } = plugin;
    const warn = (at: ConfigPath, found: Fault) => warning(plugin, at, found, source);
    const { deprecated } = plugin.definition;
    const own = `${KERNEL.version} at ${KERNEL.path}`;
    return [
      ...(copy ? [warn(path, fault('KERNEL_COPY', copy.name, copy.version, copy.path, own, copy.cure))] : []),
      ...(deprecated === undefined ? [] : [warn(path, fault('PLUGIN_DEPRECATED', deprecated))]),
      ...plugin.options
        .deprecated(options)
        .map((found) => warn([...optionsPath, ...found.path], fault('OPTION_DEPRECATED', found.description))),
    ];
  });
}

/** Lists the plugins whose package or module was changed on the disk since they were loaded. */
export function updatedPlugins(entries: readonly LoadedEntry[], source: ConfigSource): readonly string[] {
  return entries.flatMap(({ plugin, path }) => {
    if (plugin === undefined || !isAbsolute(plugin.path)) return [];
    const installed = packageOf(plugin.path)?.version;
    if (installed !== undefined && installed !== plugin.version)
      return warning(plugin, path, fault('PLUGIN_UPDATED', installed, plugin.version), source);
    const isSame = plugin.modified === undefined || plugin.modified === (modifiedAt(plugin.path) ?? plugin.modified);
    return isSame ? [] : warning(plugin, path, fault('PLUGIN_CHANGED'), source);
  });
}

function warning({ name, version }: PluginIdentity, path: ConfigPath, { code, message }: Fault, source: ConfigSource): string {
  return formatProblem({
    code,
    message,
    file: source.shown,
    position: source.position(path, 'key'),
    path,
    plugin: { name, version },
  });
}
