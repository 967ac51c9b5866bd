import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Fault, fault, reasonWithPlace } from '../base/errors.js';
import { beginMethod } from '../base/plugin-calls.js';
import type { ConfigPath } from '../base/problem.js';
import type { OptionSchema } from '../options/schema.js';
import type { Reference } from '../options/variables.js';
import type { LoadedPlugin } from '../plugin/loader.js';
import type { CheckContext, ConfigProblem } from '../plugin/plugin.js';
import { typeName } from '../plugin/shape.js';
import type { Entry } from './entries.js';
import type { FileLayout } from './file-layout.js';
import type { Problems } from './problems.js';

type Options = Readonly<Record<string, unknown>>;

/**
 * Characters from which on the text of a variable counts as a secret, even if no schema marks it.
 */
const MIN_SECRET_VARIABLE = 12;

/** Shorter texts are found in secrets by chance. */
const MIN_PART = 4;

/** What must stay secret. */
export interface Secrets {
  readonly texts: Set<string>;
  /** The names of variables that hold secrets. */
  readonly variables: Set<string>;
}

/**
 * Checks an entry's options with the plugin's schema and its `check`. If the schema finds mistakes,
 * `check` sees the options without the invalid ones: a mistake in one place must not hide another.
 * @param secrets receives the texts that must not reach the logs, and the names of the variables
 *   that they come from.
 */
export function configure(
  entry: Entry,
  context: Omit<CheckContext, 'readFile'>,
  layout: FileLayout,
  secrets: Secrets,
  problems: Problems,
): void {
  const { plugin, optionsPath, options, references, commonKeys } = entry;
  addSecretVariables(entry, layout, secrets);
  if (plugin === undefined) return;
  const checked = plugin.options.check(options, references, { keys: commonKeys, synonyms: layout.synonyms });
  for (const text of checked.secrets) {
    secrets.texts.add(text);
    for (const { name, text: part } of references)
      if (part.length >= MIN_PART && text.includes(part)) secrets.variables.add(name);
  }
  for (const found of checked.faults) problems.add([...optionsPath, ...found.path], found, found.at, plugin);
  if (checked.faults.length > 0) entry.faulty = true;
  else entry.config = checked.value;
  runCheck(entry, plugin, context, problems);
}

/**
 * Adds the variables that are secret to the logs: all but short ones and those of plain
 * options. Only the option's own key decides: an entry with the key `host` has secrets like any
 * other.
 */
export function addSecretVariables({ references }: Entry, { plainOptions }: FileLayout, secrets: Secrets): void {
  const isPlain = ({ path }: Reference) => plainOptions.includes(String(path.findLast((step) => typeof step === 'string')));
  for (const reference of references) {
    const { from, name, text } = reference;
    if (from !== 'environment' || text.length < MIN_SECRET_VARIABLE || isPlain(reference)) continue;
    secrets.texts.add(text);
    secrets.variables.add(name);
  }
}

function runCheck(entry: Entry, plugin: LoadedPlugin, context: Omit<CheckContext, 'readFile'>, problems: Problems): void {
  if (plugin.definition.check === undefined) return;
  const rest =
    entry.config === undefined
      ? withoutInvalid(plugin.options, entry.options, entry.references)
      : { config: entry.config, removed: [] };
  if (rest === undefined) return;
  const reject = (found: Fault, at: 'key' | 'value', path: ConfigPath = entry.path) => {
    problems.add(path, found, at, plugin);
    entry.faulty = true;
  };
  const ended = beginMethod('check', entry.id, plugin);
  try {
    const found: unknown = plugin.definition.check(rest.config, { ...context, readFile: fileReader(entry, context) });
    const mistake = resultMistake(found);
    if (mistake !== undefined) reject(fault('CHECK_RESULT', 'check', mistake), 'key');
    else
      for (const { path, message } of found as readonly ConfigProblem[]) {
        if (isOwnProblem(path, rest.removed)) reject(fault('OPTION_INVALID', message), 'value', [...entry.optionsPath, ...path]);
      }
  } catch (error) {
    reject(fault('CHECK_FAILED', reasonWithPlace(error)), 'key');
  } finally {
    ended();
  }
}

/** Says why what a plugin's `check` or `verify` returned is not a list of problems. */
export function resultMistake(found: unknown): string | undefined {
  const isProblem = (value: unknown) =>
    typeof value === 'object' && value !== null && 'path' in value && Array.isArray(value.path) && 'message' in value;
  if (!Array.isArray(found)) return typeName(found);
  return found.every(isProblem) ? undefined : 'an array with other values';
}

/** Reads files for `check`, and records them as part of the entry. */
function fileReader({ files }: Entry, { resolvePath }: Pick<CheckContext, 'resolvePath'>): CheckContext['readFile'] {
  return (name) => {
    const path = resolvePath(name);
    files.set(path, undefined);
    const text = readFileSync(path, 'utf8');
    files.set(path, hash('sha256', text));
    return text;
  };
}

/** Returns the options without the invalid ones, or undefined if they are invalid as a whole. */
function withoutInvalid(
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
      // A list is removed as a whole: without one item, the others would have other positions than
      // in the file.
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
 * Whether a problem is in the file and does not just follow from removed options. If a whole entry
 * of a map was removed, references to it are broken, so only problems under the same key count.
 */
function isOwnProblem(path: ConfigPath, removed: readonly ConfigPath[]): boolean {
  const entries = removed.filter(({ length }) => length <= 2);
  return entries.length === 0 || entries.some(([key]) => key === path[0]);
}
