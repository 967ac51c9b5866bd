import { type ConfigPath, reasonOf } from '../base/errors.js';
import type { OptionSchema } from '../options/schema.js';
import type { Reference } from '../options/variables.js';
import type { LoadedPlugin } from '../plugin/loader.js';
import type { CheckContext } from '../plugin/plugin.js';
import type { Entry } from './entries.js';
import type { FileLayout } from './file-layout.js';
import type { Problems } from './problems.js';

type Options = Readonly<Record<string, unknown>>;

/** From this length on, what a variable holds may be a secret that nobody marked. */
const SUSPICIOUS = 12;

/**
 * Checks an entry's options against the plugin's schema, and asks the plugin for what a schema cannot say. The plugin is asked also where the schema
 * finds faults, about what is left without them: a fault of one agent must not hide those of another.
 * @param secrets takes what must not reach the logs.
 */
export function configure(
  entry: Entry,
  context: CheckContext,
  layout: FileLayout,
  secrets: Set<string>,
  problems: Problems,
): void {
  const { plugin, optionsPath, options, references, commonKeys } = entry;
  for (const secret of secretVariables(entry, layout)) secrets.add(secret);
  if (plugin === undefined) return;
  const checked = plugin.options.check(options, references, commonKeys);
  for (const secret of checked.secrets) secrets.add(secret);
  for (const fault of checked.faults) problems.add([...optionsPath, ...fault.path], fault.message, fault.at, plugin);
  if (checked.faults.length > 0) entry.faulty = true;
  else entry.config = checked.value;
  ask(entry, plugin, context, problems);
}

/**
 * What came from a variable is secret to the logs, unless it is short or known to be nothing to hide. Only the option's own name says so: an entry that
 * somebody calls `system` has secrets like any other.
 */
function secretVariables({ references }: Entry, { plainOptions }: FileLayout): string[] {
  const isPlain = ({ path }: Reference) => plainOptions.includes(String(path.findLast((step) => typeof step === 'string')));
  return references
    .filter((reference) => reference.from === 'environment' && reference.text.length >= SUSPICIOUS && !isPlain(reference))
    .map(({ text }) => text);
}

function ask(entry: Entry, plugin: LoadedPlugin, context: CheckContext, problems: Problems): void {
  if (plugin.definition.check === undefined) return;
  const rest =
    entry.config === undefined ? salvage(plugin.options, entry.options, entry.references) : { config: entry.config, removed: [] };
  if (rest === undefined) return;
  try {
    for (const problem of plugin.definition.check(rest.config, context)) {
      if (!mayComplain(problem.path, rest.removed)) continue;
      problems.add([...entry.optionsPath, ...problem.path], problem.message, 'value', plugin);
      entry.faulty = true;
    }
  } catch (error) {
    problems.add(entry.path, `the plugin's check failed: ${reasonOf(error)}`, 'key', plugin);
    entry.faulty = true;
  }
}

/** The options without what is wrong with them, or undefined where they are no options then. */
function salvage(
  schema: OptionSchema,
  options: Options,
  references: readonly Reference[],
): { config: Options; removed: ConfigPath[] } | undefined {
  const rest = structuredClone(options);
  const removed: ConfigPath[] = [];
  for (;;) {
    const { value, faults } = schema.check(rest, references);
    if (faults.length === 0) return { config: value, removed };
    for (const { path } of faults) {
      // A list is left out whole: without one of its items the others would not be where they are in the file.
      const inList = path.findIndex((step) => typeof step === 'number');
      const place = inList < 0 ? path : path.slice(0, inList);
      if (place.length === 0) return undefined;
      remove(rest, place);
      removed.push(place);
    }
  }
}

function remove(options: unknown, path: ConfigPath): void {
  let parent = options as Record<string, unknown> | undefined;
  for (const step of path.slice(0, -1)) parent = parent?.[step] as Record<string, unknown> | undefined;
  delete parent?.[path.at(-1) ?? ''];
}

/**
 * Whether a complaint is the user's own fault, and not that of something having been left out: where a whole entry of a map is missing, references to it
 * lead nowhere, so that only its neighbours are heard.
 */
function mayComplain(path: ConfigPath, removed: readonly ConfigPath[]): boolean {
  const entries = removed.filter(({ length }) => length <= 2);
  return entries.length === 0 || entries.some(([key]) => key === path[0]);
}
