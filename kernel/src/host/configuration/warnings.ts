import { type Fault, fault } from '../base/errors.js';
import { KERNEL } from '../base/kernel-package.js';
import { type ConfigPath, formatProblem } from '../base/problem.js';
import type { ConfigSource } from './config-source.js';
import type { LoadedEntry } from './entry.js';

/**
 * Lists what works but should be changed: deprecated plugins and options, and second copies of this
 * package. One sentence each.
 */
export function warningsOf(entries: readonly LoadedEntry[], source: ConfigSource): readonly string[] {
  return entries.flatMap((entry) => {
    const { plugin, path, optionsPath, options } = entry;
    if (plugin === undefined) return [];
    const { name, version, kernelCopy: copy } = plugin;
    const warn = (at: ConfigPath, { code, message }: Fault) =>
      formatProblem({
        code,
        message,
        file: source.shown,
        position: source.position(at, 'key'),
        path: at,
        plugin: { name, version },
      });
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
