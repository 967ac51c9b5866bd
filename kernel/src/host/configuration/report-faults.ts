import { fault, type PluginError } from '../base/errors.js';
import { ConfigFault } from '../plugin/plugin.js';
import type { FileContents } from './entries.js';
import type { Problems } from './problems.js';

/** Adds the mistakes in the configuration that entries found when they started. */
export function reportFaults(failures: readonly PluginError[], { entries }: FileContents, problems: Problems): void {
  for (const { cause, entry, plugin } of failures) {
    if (!(cause instanceof ConfigFault)) continue;
    const place = entries.find(({ id }) => id === entry)?.optionsPath ?? [];
    for (const { path, message } of cause.problems) {
      problems.add([...place, ...path], fault('OPTION_INVALID', message), 'value', plugin);
    }
  }
}
