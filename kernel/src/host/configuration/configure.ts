import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { type Fault, fault, reasonWithPlace } from '../base/errors.js';
import { beginMethod } from '../base/plugin-calls.js';
import type { ConfigPath } from '../base/problem.js';
import { isModulePath } from '../options/package-name.js';
import type { OptionSchema } from '../options/schema.js';
import type { Reference } from '../options/variables.js';
import type { LoadedPlugin } from '../plugin/loader.js';
import type { CheckContext, ConfigProblem } from '../plugin/plugin.js';
import { typeName } from '../plugin/shape.js';
import type { ConfiguredEntry, LoadedEntry, Options, ReadEntry } from './entry.js';
import type { FileLayout } from './file-layout.js';
import type { Problems } from './problems.js';

/** Characters from which a variable's text counts as a secret, whatever its schema says. */
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
  entry: LoadedEntry,
  { isInstalled, ...context }: Omit<CheckContext, 'readFile'> & { isInstalled(name: string): boolean },
  layout: FileLayout,
  secrets: Secrets,
  problems: Problems,
): ConfiguredEntry {
  const { plugin, optionsPath, options, references, commonKeys } = entry;
  const files = new Map<string, string | undefined>();
  addSecretVariables(entry, layout, secrets);
  if (plugin === undefined) return { ...entry, config: undefined, files };
  const reserved = reservedOptions(entry, plugin);
  for (const option of reserved) problems.add(entry.path, fault('OPTION_RESERVED', option, entry.section), 'key', plugin);
  const checked = plugin.options.check(options, references, { keys: commonKeys, synonyms: layout.synonyms });
  for (const text of checked.secrets) {
    secrets.texts.add(text);
    for (const { name, text: part } of references)
      if (part.length >= MIN_PART && text.includes(part)) secrets.variables.add(name);
  }
  for (const found of checked.faults) problems.add([...optionsPath, ...found.path], found, found.at, plugin);
  const missing = plugin.options.packages(options).filter(({ name }) => !isInstalled(name));
  for (const { path, name } of missing) {
    const found = isModulePath(name)
      ? fault('MODULE_NOT_FOUND', context.resolvePath(name))
      : fault('PACKAGE_NOT_INSTALLED', name);
    problems.add([...optionsPath, ...path], found, 'value', plugin);
  }
  const config = checked.faults.length > 0 ? undefined : checked.value;
  const unset = references.filter(({ from }) => from === 'unset').map(({ path }) => path);
  const isWhole = config !== undefined && unset.length === 0;
  const rest = isWhole ? { config, unset, removed: [] } : withoutInvalid(plugin.options, options, references, unset);
  const readFile = fileReader(files, context);
  const isAccepted = rest === undefined || runCheck(entry, plugin, rest, { ...context, readFile }, problems);
  const isFaulty = entry.isFaulty || config === undefined || !isAccepted || reserved.length + missing.length > 0;
  return { ...entry, config, files, isFaulty };
}

/** The plugin's own options that belong to the file. Not of options that stand at the top level. */
function reservedOptions({ path, optionsPath, commonKeys }: LoadedEntry, { definition }: LoadedPlugin): readonly string[] {
  if (optionsPath !== path) return [];
  return commonKeys.filter((key) => Object.hasOwn(definition.configSchema.properties ?? {}, key));
}

/** Adds the secret variables: all but short ones and those of plain options, by their own key. */
function addSecretVariables({ references }: Pick<ReadEntry, 'references'>, { plainOptions }: FileLayout, secrets: Secrets): void {
  const isPlain = ({ path }: Reference) => plainOptions.includes(String(path.findLast((step) => typeof step === 'string')));
  for (const reference of references) {
    const { from, name, text } = reference;
    if (from !== 'environment' || text.length < MIN_SECRET_VARIABLE || isPlain(reference)) continue;
    secrets.texts.add(text);
    secrets.variables.add(name);
  }
}

/** Options without the invalid ones. */
interface ValidOptions {
  readonly config: Options;
  /** The places of options whose variables are unset. */
  readonly unset: readonly ConfigPath[];
  readonly removed: readonly ConfigPath[];
}

/** Runs the plugin's `check`. Returns whether it finds no mistake. */
function runCheck(
  { id, path, optionsPath }: LoadedEntry,
  plugin: LoadedPlugin,
  { config, unset, removed }: ValidOptions,
  context: CheckContext,
  problems: Problems,
): boolean {
  if (plugin.definition.check === undefined) return true;
  let isAccepted = true;
  const reject = (found: Fault, at: 'key' | 'value', place: ConfigPath = path) => {
    problems.add(place, found, at, plugin);
    isAccepted = false;
  };
  const ended = beginMethod('check', id, plugin);
  try {
    const found: unknown = plugin.definition.check(config, context);
    const mistake = resultMistake(found);
    if (mistake !== undefined) reject(fault('CHECK_RESULT', 'check', mistake), 'key');
    else
      for (const problem of found as readonly ConfigProblem[]) {
        const isReported = [...unset, ...removed].some((place) => isDeepStrictEqual(place, problem.path));
        if (isReported || !isOwnProblem(problem.path, removed)) continue;
        reject(fault('OPTION_INVALID', problem.message), 'value', [...optionsPath, ...problem.path]);
      }
  } catch (error) {
    reject(fault('CHECK_FAILED', reasonWithPlace(error)), 'key');
  } finally {
    ended();
  }
  return isAccepted;
}

/** Says why what a plugin's `check` or `verify` returned is not a list of problems. */
export function resultMistake(found: unknown): string | undefined {
  const isProblem = (value: unknown) =>
    typeof value === 'object' && value !== null && 'path' in value && Array.isArray(value.path) && 'message' in value;
  if (!Array.isArray(found)) return typeName(found);
  return found.every(isProblem) ? undefined : 'an array with other values';
}

/** Reads files for `check`. @param files receives them, as part of the entry. */
function fileReader(
  files: Map<string, string | undefined>,
  { resolvePath }: Pick<CheckContext, 'resolvePath'>,
): CheckContext['readFile'] {
  return (name) => {
    const path = resolvePath(name);
    files.set(path, undefined);
    const text = readFileSync(path, 'utf8');
    files.set(path, hash('sha256', text));
    return text;
  };
}

/**
 * Returns the options without the invalid ones, or undefined if they are invalid as a whole.
 * @param unset the places of variables without a value, which are reported already.
 */
function withoutInvalid(
  schema: OptionSchema,
  options: Options,
  references: readonly Reference[],
  unset: readonly ConfigPath[],
): ValidOptions | undefined {
  const rest = structuredClone(options);
  const places = unset.map(outsideLists);
  for (const place of places) remove(rest, place);
  const removed: ConfigPath[] = [];
  for (;;) {
    const { value, faults } = schema.check(rest, references);
    if (faults.length === 0) return { config: value, unset: places, removed };
    const before = removed.length;
    for (const { path } of faults) {
      const place = outsideLists(path);
      if (place.length === 0) return undefined;
      if (remove(rest, place)) removed.push(place);
    }
    if (removed.length === before) return undefined; // all are in what defaults fill in
  }
}

/**
 * The path, or that of the list that it leads into. A list is removed as a whole: without one item,
 * the others would have other positions than in the file.
 */
function outsideLists(path: ConfigPath): ConfigPath {
  const inList = path.findIndex((step) => typeof step === 'number');
  return inList < 0 ? path : path.slice(0, inList);
}

/** Returns whether there was something at the path. */
function remove(options: unknown, path: ConfigPath): boolean {
  let parent = options as Record<string, unknown> | undefined;
  for (const step of path.slice(0, -1)) parent = parent?.[step] as Record<string, unknown> | undefined;
  const key = path.at(-1) ?? '';
  if (parent === undefined || !Object.hasOwn(parent, key)) return false;
  delete parent[key];
  return true;
}

/**
 * Whether a problem is in the file and does not just follow from removed options. If a whole entry
 * of a map was removed, references to it are broken, so only problems under the same key count.
 */
function isOwnProblem(path: ConfigPath, removed: readonly ConfigPath[]): boolean {
  const entries = removed.filter(({ length }) => length <= 2);
  return entries.length === 0 || entries.some(([key]) => key === path[0]);
}
