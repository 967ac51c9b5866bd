import { type Fault, fault } from '../base/errors.js';
import { suggestion, synonymOf } from '../base/nearest.js';
import { type ConfigPath, formatPath } from '../base/problem.js';
import { OptionSchema } from '../options/schema.js';
import type { JsonSchema } from '../options/schema-types.js';
import { type Environment, interpolate, type Reference } from '../options/variables.js';
import { type DefinedPlugin, isPlugin } from '../plugin/plugin.js';
import type { ConfigSource } from './config-source.js';
import { isMap, type LoadedEntry, type Options, type ReadEntry } from './entry.js';
import type { FileLayout, SectionLayout } from './file-layout.js';
import { LOG_SCHEMA, type LogSettings } from './log-settings.js';
import type { Problems } from './problems.js';

/** The content of the file by entries, as one of the phases has them. */
export interface FileContents<E extends ReadEntry = ReadEntry> {
  /** In the order of the file. */
  readonly entries: readonly E[];
  /** Words in place of a section's entries, by section: `open`. */
  readonly literals: ReadonlyMap<string, string>;
  /** The keys of every section and of every other map of the top level. */
  readonly keys: ReadonlyMap<string, readonly string[]>;
  /** An option of an entry as the file sets it, with variables replaced. */
  readonly optionOf: (section: string, key: string, option: string) => unknown;
  readonly log: LogSettings;
}

/** Changes to the content of the file before it is read. */
export interface FileChanges {
  /** Sections to leave out. */
  readonly omit?: readonly string[] | undefined;
  /**
   * Sections to add or to replace. A function receives the section as the file has it, before
   * variables are replaced.
   */
  readonly replace?: Readonly<Record<string, unknown>> | undefined;
}

const COMMON = {
  use: { type: 'string', minLength: 1, description: 'The plugin of the entry. By default the entry’s own key.' },
  optional: {
    type: 'boolean',
    default: false,
    description: 'Disables the entry, instead of stopping the server, if it names an unset or empty variable or does not start.',
  },
  unless: {
    type: 'array',
    items: { type: 'string' },
    default: [],
    description: 'Disables the entry if one of these entries of the same section is enabled. It starts if they fail to.',
  },
} as const satisfies Record<string, JsonSchema>;

/** The schema of the keys that every entry of a section can have beside its plugin's options. */
export function commonSchema({ shape, shared = {} }: SectionLayout): JsonSchema {
  return { type: 'object', properties: { ...COMMON, ...shared }, required: shape === 'single' ? ['use'] : [] };
}

/** Divides the file into entries and replaces their variables. Mistakes become problems. */
export class FileReader {
  readonly #layout: FileLayout;
  readonly #env: Environment;
  readonly #hasVariables: boolean;
  readonly #problems: Problems;
  readonly #content: Map<string, unknown>;
  readonly #literals = new Map<string, string>();

  constructor(source: ConfigSource, layout: FileLayout, changes: FileChanges, env: Environment, problems: Problems) {
    this.#layout = layout;
    this.#env = env;
    this.#hasVariables = source.hasVariables;
    this.#problems = problems;
    this.#content = this.#topLevel(source.content, changes);
  }

  /** Reads the entries. Call `withTopLevelOptions` once their plugins are loaded. */
  read(): FileContents {
    const { sections } = this.#layout;
    const names = new Set([...this.#content.keys(), ...Object.keys(sections)]);
    const entries = [...names].flatMap((section) => this.#readSection(section, sections[section]));
    const keysOf = (key: string, map: Options) => (sections[key]?.shape === 'single' ? [key] : Object.keys(map));
    return {
      entries,
      literals: this.#literals,
      keys: new Map([...this.#content].flatMap(([key, value]) => (isMap(value) ? [[key, keysOf(key, value)]] : []))),
      optionOf: (section, key, option) => this.#optionOf(section, key, option),
      log: this.#readLog(),
    };
  }

  #optionOf(section: string, key: string, option: string): unknown {
    const map = this.#content.get(section);
    const entry = isMap(map) && Object.hasOwn(map, key) ? map[key] : undefined;
    const value = isMap(entry) && Object.hasOwn(entry, option) ? entry[option] : undefined;
    return this.#hasVariables ? interpolate(value, this.#env).value : value;
  }

  /** Reads the default entries that loaded plugins need and the file lacks, with who needs them. */
  needed(loaded: readonly LoadedEntry[]): readonly { readonly entry: ReadEntry; readonly neededBy: string }[] {
    const plugins = loaded.flatMap(({ plugin }) => plugin ?? []);
    const needs = plugins.flatMap(({ path, definition }) => (definition.needs ?? []).map((section) => ({ section, path })));
    return needs.flatMap(({ section, path }) => {
      const layout = this.#layout.sections[section];
      if (layout?.fallback === undefined || this.#content.has(section)) return [];
      this.#content.set(section, layout.fallback);
      return this.#readSection(section, layout).map((entry) => ({ entry, neededBy: path }));
    });
  }

  /**
   * Gives entries their options at the top level, and reports keys that belong to nothing.
   * @param sectionsOf the sections that have an installed plugin of this name.
   */
  withTopLevelOptions(entries: readonly LoadedEntry[], sectionsOf: (name: string) => readonly string[]): readonly LoadedEntry[] {
    const { sections } = this.#layout;
    const isOwner = ({ section }: LoadedEntry) => sections[section]?.topLevelOptions === true;
    const complete = entries.map((entry) => (isOwner(entry) ? this.#withTopLevelOptions(entry) : entry));
    const owners = complete.filter(isOwner);
    // Without its plugin, it is unknown which keys belong to an entry.
    if (owners.some(({ plugin }) => plugin === undefined)) return complete;
    const known = [...Object.keys(sections), ...owners.flatMap(topLevelKeys), 'log'];
    for (const key of this.#content.keys()) {
      if (!known.includes(key)) this.#problems.add([key], this.#unknownSection(key, known, sectionsOf(key)));
    }
    return complete;
  }

  #unknownSection(key: string, known: readonly string[], ofPlugin: readonly string[]): Fault {
    const synonym = synonymOf(key, known, this.#layout.synonyms);
    if (synonym !== undefined) return fault('SECTION_UNKNOWN', `, did you mean "${synonym}"?`);
    return ofPlugin.length > 0 ? fault('SECTION_IS_PLUGIN', ofPlugin) : fault('SECTION_UNKNOWN', suggestion(key, known));
  }

  #withTopLevelOptions(entry: LoadedEntry): LoadedEntry {
    for (const key of Object.keys(entry.options)) {
      this.#problems.add([...entry.path, key], fault('OPTION_AT_TOP_LEVEL', entry.id));
    }
    const keys = topLevelKeys(entry).filter((key) => (this.#content.get(key) ?? null) !== null);
    const raw = Object.fromEntries(keys.map((key) => [key, this.#content.get(key)]));
    const { value, references, sound } = this.#interpolate(raw, []);
    const isFaulty = !sound || this.#reportUnset([], references) || entry.isFaulty;
    return { ...entry, options: value as Options, references, isFaulty };
  }

  /** The top level after the changes. A section without a value is absent, unless it is strict. */
  #topLevel(content: unknown, { omit = [], replace = {} }: FileChanges): Map<string, unknown> {
    const { sections } = this.#layout;
    const found = new Map<string, unknown>();
    if (content !== null && !isMap(content)) {
      this.#problems.add([], fault('FILE_NOT_A_MAP', [...Object.keys(sections), 'log']));
    }
    for (const [key, value] of Object.entries(isMap(content) ? content : {})) {
      if (omit.includes(key) || key === '$schema') continue;
      const section = sections[key];
      if (value !== null || section === undefined || section.strict) found.set(key, value);
    }
    for (const [key, value] of Object.entries(replace)) {
      found.set(key, typeof value === 'function' ? value(found.get(key)) : value);
    }
    for (const [key, { required, fallback, onDemand }] of Object.entries(sections)) {
      if (found.has(key) || omit.includes(key)) continue;
      if (fallback !== undefined && !onDemand) found.set(key, fallback);
      if (required) this.#problems.add([key], fault('SECTION_MISSING'));
    }
    return found;
  }

  #readSection(section: string, layout: SectionLayout | undefined): readonly ReadEntry[] {
    if (layout === undefined || !this.#content.has(section)) return [];
    const raw = this.#content.get(section);
    const { value, references } = typeof raw === 'string' ? this.#interpolate(raw, [section]) : { value: raw, references: [] };
    if (this.#reportUnset([section], references)) return [];
    if (typeof value === 'string' && layout.literals?.includes(value)) {
      this.#literals.set(section, value);
    } else if (layout.strict && (value === null || (isMap(value) && Object.keys(value).length === 0))) {
      this.#problems.add([section], fault('SECTION_EMPTY', orLiteral(layout, '; add an entry, write')));
    } else if (!isMap(value)) {
      this.#problems.add([section], fault('SECTION_NOT_A_MAP', orLiteral(layout, ' or')), 'value');
    } else {
      const schema = new OptionSchema(commonSchema(layout));
      if (layout.shape === 'single') return this.#readEntry(section, layout, schema, [section], value);
      return Object.entries(value).flatMap(([name, entry]) => this.#readEntry(section, layout, schema, [section, name], entry));
    }
    return [];
  }

  /** Returns no entry if it is not a map, which is reported. */
  #readEntry(section: string, layout: SectionLayout, schema: OptionSchema, path: ConfigPath, raw: unknown): ReadEntry[] {
    const { definition, rest } = takePlugin(raw ?? {});
    const { value, references, sound } = this.#interpolate(rest, path);
    if (!isMap(value)) {
      this.#problems.add(path, fault('ENTRY_NOT_A_MAP'), 'value');
      return [];
    }
    const name = String(path.at(-1));
    const commonKeys = Object.keys(schema.schema.properties ?? {});
    const isCommon = ([key]: [string, unknown]) => commonKeys.includes(key);
    const common = schema.check(
      Object.fromEntries(Object.entries({ ...value, ...(definition && { use: OBJECT }) }).filter(isCommon)),
      references,
    );
    for (const found of common.faults) this.#problems.add([...path, ...found.path], found, found.at);
    if (layout.strict && 'optional' in value) {
      this.#problems.add([...path, 'optional'], fault('ENTRY_NOT_OPTIONAL', section));
    }
    const { use, optional, unless, ...shared } = common.value;
    const isUseKey = definition === undefined && !('use' in value) && layout.shape !== 'single';
    const missing = optional === true ? references.find(({ from }) => from === 'unset' || from === 'empty') : undefined;
    const entry: ReadEntry = {
      id: formatPath(path),
      name,
      section,
      path,
      optionsPath: layout.topLevelOptions ? [] : path,
      use: isUseKey ? name : typeof use === 'string' && definition === undefined ? use : '',
      isUseKey,
      definition,
      optional: optional === true,
      unless: Array.isArray(unless) ? unless : [],
      options: Object.fromEntries(Object.entries(value).filter((pair) => !isCommon(pair))),
      shared: Object.freeze(shared),
      references,
      commonKeys,
      disabled: missing && `the variable ${missing.name} is ${missing.from === 'unset' ? 'not set' : 'empty'}`,
      isFaulty: !sound || common.faults.length > 0,
    };
    return [entry];
  }

  /** Replaces the variables in a part of the file. `sound` is false if one is malformed. */
  #interpolate(raw: unknown, path: ConfigPath): { value: unknown; references: readonly Reference[]; sound: boolean } {
    if (!this.#hasVariables) return { value: raw, references: [], sound: true };
    const { value, references, faults } = interpolate(raw, this.#env);
    this.#problems.conceal(path, references);
    for (const found of faults) this.#problems.add([...path, ...found.path], found, 'value');
    return { value, references, sound: faults.length === 0 };
  }

  #reportUnset(path: ConfigPath, references: readonly Reference[]): boolean {
    return reportUnset({ optionsPath: path, references }, this.#problems);
  }

  #readLog(): LogSettings {
    const { value, references } = this.#interpolate(this.#content.get('log') ?? {}, ['log']);
    const unset = this.#reportUnset(['log'], references);
    const checked = new OptionSchema(LOG_SCHEMA).check(value, references);
    for (const found of checked.faults) this.#problems.add(['log', ...found.path], found, found.at);
    return unset || checked.faults.length > 0 ? { level: 'info' } : (checked.value as LogSettings);
  }
}

/** Reports the variables that have neither a value nor a default. Returns whether there are any. */
export function reportUnset(
  { optionsPath, references }: Pick<ReadEntry, 'optionsPath' | 'references'>,
  problems: Problems,
): boolean {
  const unset = references.filter(({ from }) => from === 'unset');
  for (const { path: below, name } of unset) {
    problems.add([...optionsPath, ...below], fault('VARIABLE_UNSET', name), 'value');
  }
  return unset.length > 0;
}

function topLevelKeys({ plugin }: LoadedEntry): readonly string[] {
  return Object.keys(plugin?.definition.configSchema.properties ?? {});
}

/** Stands for a plugin object where the schema of the common keys wants the text of a `use`. */
const OBJECT = '(object)';

/** Separates a plugin object from the other keys of an entry. */
function takePlugin(raw: unknown): { definition: DefinedPlugin | undefined; rest: unknown } {
  if (!isMap(raw) || !isPlugin(raw.use)) return { definition: undefined, rest: raw };
  const { use, ...rest } = raw;
  return { definition: use, rest };
}

function orLiteral({ literals = [] }: SectionLayout, before: string): string {
  return literals.length === 0 ? '' : `${before} ${literals.map((word) => `"${word}"`).join(' or ')}`;
}
