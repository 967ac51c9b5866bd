import { type ConfigError, fault, type PluginError } from '../base/errors.js';
import { ConfigFault } from '../plugin/plugin.js';
import { Problems } from './problems.js';
import type { Configuration } from './read-configuration.js';

/** The mistakes in the configuration that entries found when they started. */
export function mistakesOf(failures: readonly PluginError[], configuration: Configuration): ConfigError | undefined {
  const { source, problems: earlier, contents } = configuration;
  const problems = new Problems(source, earlier);
  for (const { cause, entry, plugin } of failures) {
    if (!(cause instanceof ConfigFault)) continue;
    const place = contents.entries.find(({ id }) => id === entry)?.optionsPath ?? [];
    for (const { path, message } of cause.problems) {
      problems.add([...place, ...path], fault('OPTION_INVALID', message), 'value', plugin);
    }
  }
  return problems.error;
}

/** The failures with the places of their entries in the file: `plugboard.yaml:12:3`. */
export function placed(failures: readonly PluginError[], { source, contents }: Configuration): PluginError[] {
  return failures.map((failure) => {
    const entry = contents.entries.find(({ id }) => id === failure.entry);
    const position = entry && source.position(entry.path, 'key');
    return failure.at(position && `${source.shown}:${position.line}:${position.column}`);
  });
}
