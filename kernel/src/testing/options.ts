import { resolve } from 'node:path';
import { formatPath } from '../host/base/problem.js';
import { OptionSchema } from '../host/options/schema.js';
import type { Infer, JsonSchema } from '../host/options/schema-types.js';
import type { CheckContext, PluginDefinition } from '../host/plugin/plugin.js';

export interface CheckedConfig<C> {
  /** With the defaults filled in, frozen. To be used only where there are no faults. */
  readonly config: C;
  /** What the server would say of the options, each as `tokens[0].name: must not be empty`. */
  readonly faults: readonly string[];
}

/**
 * Checks options as the server does when it reads its file: by the plugin's schema, and where that finds nothing by its `check`.
 *
 * @param around what `check` may look at: the other entries of the file, and where the file is (by default in the working folder).
 */
export function checkOptions<S extends JsonSchema>(
  definition: PluginDefinition<S>,
  options: unknown,
  around: Partial<CheckContext> = {},
): CheckedConfig<Infer<S>> {
  const { value, faults } = new OptionSchema(definition.configSchema).check(options ?? {});
  const config = value as Infer<S>; // which is what the schema has just been asked
  const dependencies: CheckContext = { ...NOTHING_AROUND, ...around };
  const found = faults.length > 0 ? faults : (definition.check?.(config, dependencies) ?? []);
  return { config, faults: found.map(({ path, message }) => (path.length > 0 ? `${formatPath(path)}: ${message}` : message)) };
}

const NOTHING_AROUND: CheckContext = {
  entries: () => [],
  disabled: () => [],
  literal: () => undefined,
  resolvePath: (path) => resolve(path),
};
