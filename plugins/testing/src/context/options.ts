import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CheckContext, Infer, JsonSchema } from '@plugboard/kernel';
import { formatPath, OptionSchema, type PluginDefinition } from '@plugboard/kernel/internal';

/** The result of `checkOptions`: options with defaults, and mistakes. @experimental */
export interface CheckedConfig<C> {
  /** The options with defaults, frozen. Only valid if there are no faults. */
  readonly config: C;
  /** The mistakes that the server would report, each as `tokens[0].name: must not be empty`. */
  readonly faults: readonly string[];
}

/**
 * Checks options as the server does when it reads its file: with the plugin's schema, and if that
 * finds no mistake, with its `check`.
 *
 * @param around what `check` can see of the file: other entries, and the file's folder (by default
 *   the working folder).
 * @experimental
 */
export function checkOptions<S extends JsonSchema>(
  definition: PluginDefinition<S>,
  options: unknown,
  around: Partial<CheckContext> = {},
): CheckedConfig<Infer<S>> {
  const { value, faults } = new OptionSchema(definition.configSchema).check(options ?? {});
  const config = value as Infer<S>; // validated by the schema if there are no faults
  const { resolvePath = resolve } = around;
  const readFile = (path: string) => readFileSync(resolvePath(path), 'utf8');
  const dependencies: CheckContext = { ...NOTHING_AROUND, resolvePath, readFile, ...around };
  const found = faults.length > 0 ? faults : (definition.check?.(config, dependencies) ?? []);
  return { config, faults: found.map(({ path, message }) => (path.length > 0 ? `${formatPath(path)}: ${message}` : message)) };
}

const NOTHING_AROUND = {
  entries: () => [],
  disabled: () => [],
  literal: () => undefined,
} satisfies Partial<CheckContext>;
