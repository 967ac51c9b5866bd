import { type ConfigPath, formatPath } from '../base/errors.js';
import { suggestion } from '../base/nearest.js';
import { LOG_LEVELS } from '../log/log.js';
import { OptionSchema } from '../options/schema.js';
import type { JsonSchema } from '../options/schema-types.js';
import { type Environment, interpolate, type Reference } from '../options/variables.js';
import type { LoadedPlugin } from '../plugin/loader.js';
import type { ConfigFile } from './config-file.js';
import type { FileLayout, SectionLayout } from './file-layout.js';
import type { Problems } from './problems.js';

type Options = Readonly<Record<string, unknown>>;

/** One entry of the file on its way through the phases: each adds what it finds out. */
export interface Entry {
  /** `models.fast`. */
  readonly id: string;
  /** `fast`. */
  readonly name: string;
  /** `models`. */
  readonly section: string;
  /** Its place in the file. */
  readonly path: ConfigPath;
  /** Where its options are: `path`, or the top level if the section has `topLevelOptions`. */
  readonly optionsPath: ConfigPath;
  /** Empty where the file does not tell. */
  readonly use: string;
  readonly optional: boolean;
  readonly unless: readonly string[];
  /** The plugin's own options as they are written, variables replaced. */
  options: Options;
  /** The section's shared options, checked. */
  readonly shared: Options;
  references: readonly Reference[];
  /** Keys that may stand beside the plugin's own. */
  readonly commonKeys: readonly string[];
  /** Why it takes no part. */
  disabled?: string;
  /** Something is wrong with it and was told; it is checked further, and not registered. */
  faulty: boolean;
  /** Set by the load phase. */
  plugin?: LoadedPlugin;
  /** Set by the configure phase, where nothing is wrong with the options: checked, defaults filled in, frozen. */
  config?: Options;
}

/** What the file says, cut into its parts. */
export interface FileContents {
  /** In the order of the file. */
  readonly entries: readonly Entry[];
  /** The words that stand in place of a section's entries. */
  readonly literals: ReadonlyMap<string, string>;
  /** The keys under every section and every other map of the top level. */
  readonly keys: ReadonlyMap<string, readonly string[]>;
  readonly logLevel: string;
}

/** What is left out of the file, or put in the place of what it says. */
export interface FileChanges {
  readonly omit?: readonly string[] | undefined;
  readonly replace?: Readonly<Record<string, unknown>> | undefined;
}

const COMMON = {
  use: { type: 'string', minLength: 1, description: 'The plugin that serves the entry. Left out, it is the entry’s own key.' },
  optional: {
    type: 'boolean',
    default: false,
    description: 'The server runs without the entry where a variable it names is unset or empty, or where it does not start.',
  },
  unless: {
    type: 'array',
    items: { type: 'string' },
    default: [],
    description: 'Entries of the same section in whose presence this one is left out.',
  },
} as const satisfies Record<string, JsonSchema>;

/** The keys that every entry of a section may have beside its plugin's own. */
export function commonSchema({ shape, shared = {} }: SectionLayout): JsonSchema {
  return { type: 'object', properties: { ...COMMON, ...shared }, required: shape === 'single' ? ['use'] : [] };
}

/** The host's own key of the file. */
export const LOG_SCHEMA = {
  type: 'object',
  properties: { level: { enum: LOG_LEVELS, default: 'info', description: 'The least that is logged.' } },
  additionalProperties: false,
} as const satisfies JsonSchema;

/** Cuts the file into entries, with their variables replaced. What is wrong is added to the problems. */
export class FileReader {
  readonly #layout: FileLayout;
  readonly #env: Environment;
  readonly #problems: Problems;
  readonly #content: ReadonlyMap<string, unknown>;
  readonly #entries: Entry[] = [];
  readonly #literals = new Map<string, string>();

  constructor(file: ConfigFile, layout: FileLayout, changes: FileChanges, env: Environment, problems: Problems) {
    this.#layout = layout;
    this.#env = env;
    this.#problems = problems;
    this.#content = this.#topLevel(file.content, changes);
  }

  /** Cuts the file into entries. Call `readTopLevelOptions` once their plugins are loaded. */
  read(): FileContents {
    const { sections } = this.#layout;
    for (const section of new Set([...this.#content.keys(), ...Object.keys(sections)])) {
      const cut = sections[section];
      if (cut !== undefined) this.#readSection(section, cut);
    }
    const keysOf = (key: string, map: Options) => (sections[key]?.shape === 'single' ? [key] : Object.keys(map));
    return {
      entries: this.#entries,
      literals: this.#literals,
      keys: new Map([...this.#content].flatMap(([key, value]) => (isMap(value) ? [[key, keysOf(key, value)]] : []))),
      logLevel: this.#readLogLevel(),
    };
  }

  /** Reads the options that are keys of the top level, and reports the keys that belong to no section and no plugin. */
  readTopLevelOptions(): void {
    const { sections } = this.#layout;
    const owners = this.#entries.filter(({ section }) => sections[section]?.topLevelOptions);
    for (const entry of owners) this.#readTopLevelOptionsOf(entry);
    // Without its plugin, it is unknown which keys belong to an entry.
    if (owners.some(({ plugin }) => plugin === undefined)) return;
    const known = [...Object.keys(sections), ...owners.flatMap(topLevelKeys), 'log'];
    for (const key of this.#content.keys()) {
      if (!known.includes(key)) this.#problems.add([key], `unknown section${suggestion(key, known)}`);
    }
  }

  #readTopLevelOptionsOf(entry: Entry): void {
    for (const key of Object.keys(entry.options)) {
      this.#problems.add([...entry.path, key], `unknown option; the options of ${entry.id} are keys of the file's top level`);
    }
    const keys = topLevelKeys(entry).filter((key) => (this.#content.get(key) ?? null) !== null);
    const raw = Object.fromEntries(keys.map((key) => [key, this.#content.get(key)]));
    const { value, references, sound } = this.#interpolate(raw, []);
    entry.options = value as Options;
    entry.references = references;
    if (!sound || this.#reportUnset([], references)) entry.faulty = true;
  }

  /** The file's top level after the changes. A section without a value counts as absent, unless it is strict. */
  #topLevel(content: unknown, { omit = [], replace = {} }: FileChanges): Map<string, unknown> {
    const { sections } = this.#layout;
    const found = new Map<string, unknown>();
    if (content !== null && !isMap(content)) {
      this.#problems.add([], `the file must be a map of sections: ${[...Object.keys(sections), 'log'].join(', ')}`);
    }
    for (const [key, value] of Object.entries(isMap(content) ? content : {})) {
      if (omit.includes(key) || key === '$schema') continue;
      const section = sections[key];
      if (value !== null || section === undefined || section.strict) found.set(key, value);
    }
    for (const [key, value] of Object.entries(replace)) found.set(key, value);
    for (const [key, { required, fallback }] of Object.entries(sections)) {
      if (found.has(key) || omit.includes(key)) continue;
      if (fallback !== undefined) found.set(key, fallback);
      if (required)
        this.#problems.add([key], 'this section is missing, or nothing stands under it; nothing could reach the server');
    }
    return found;
  }

  #readSection(section: string, cut: SectionLayout): void {
    if (!this.#content.has(section)) return;
    const raw = this.#content.get(section);
    const { value, references } = typeof raw === 'string' ? this.#interpolate(raw, [section]) : { value: raw, references: [] };
    if (this.#reportUnset([section], references)) return;
    if (typeof value === 'string' && cut.literals?.includes(value)) {
      this.#literals.set(section, value);
    } else if (cut.strict && (value === null || (isMap(value) && Object.keys(value).length === 0))) {
      this.#problems.add([section], `nothing stands under it${orLiteral(cut, '; name a plugin, or write')}, or remove the key`);
    } else if (!isMap(value)) {
      this.#problems.add([section], `must be a map${orLiteral(cut, ' or')}`, 'value');
    } else {
      const schema = new OptionSchema(commonSchema(cut));
      if (cut.shape === 'single') this.#readEntry(section, cut, schema, [section], value);
      else for (const [name, entry] of Object.entries(value)) this.#readEntry(section, cut, schema, [section, name], entry);
    }
  }

  #readEntry(section: string, cut: SectionLayout, schema: OptionSchema, path: ConfigPath, raw: unknown): void {
    const { value, references, sound } = this.#interpolate(raw ?? {}, path);
    if (!isMap(value)) {
      this.#problems.add(path, 'must be a map of options, {} where there are none', 'value');
      return;
    }
    const name = String(path.at(-1));
    const commonKeys = Object.keys(schema.schema.properties ?? {});
    const isCommon = ([key]: [string, unknown]) => commonKeys.includes(key);
    const common = schema.check(Object.fromEntries(Object.entries(value).filter(isCommon)), references);
    for (const fault of common.faults) this.#problems.add([...path, ...fault.path], fault.message, fault.at);
    if (cut.strict && 'optional' in value) {
      const why = 'without it the server would be less protected than the file says';
      this.#problems.add([...path, 'optional'], `an entry under ${section} cannot be optional: ${why}`);
    }
    const { use, optional, unless, ...shared } = common.value;
    const entry: Entry = {
      id: formatPath(path),
      name,
      section,
      path,
      optionsPath: cut.topLevelOptions ? [] : path,
      use: typeof use === 'string' ? use : 'use' in value || cut.shape === 'single' ? '' : name,
      optional: optional === true,
      unless: Array.isArray(unless) ? unless : [],
      options: Object.fromEntries(Object.entries(value).filter((pair) => !isCommon(pair))),
      shared: Object.freeze(shared),
      references,
      commonKeys,
      faulty: !sound || common.faults.length > 0,
    };
    const missing = references.find(({ from }) => from === 'unset' || from === 'empty');
    if (entry.optional && missing !== undefined) {
      entry.disabled = `the variable ${missing.name} is ${missing.from === 'unset' ? 'not set' : 'empty'}`;
    }
    this.#entries.push(entry);
  }

  /** Replaces the variables of a piece of the file. `sound` is false where something was wrong with how one is written. */
  #interpolate(raw: unknown, path: ConfigPath): { value: unknown; references: readonly Reference[]; sound: boolean } {
    const { value, references, faults } = interpolate(raw, this.#env);
    for (const fault of faults) this.#problems.add([...path, ...fault.path], fault.message, 'value');
    return { value, references, sound: faults.length === 0 };
  }

  #reportUnset(path: ConfigPath, references: readonly Reference[]): boolean {
    return reportUnset({ optionsPath: path, references }, this.#problems);
  }

  #readLogLevel(): string {
    const { value, references } = this.#interpolate(this.#content.get('log') ?? {}, ['log']);
    const unset = this.#reportUnset(['log'], references);
    const checked = new OptionSchema(LOG_SCHEMA).check(value, references);
    for (const fault of checked.faults) this.#problems.add(['log', ...fault.path], fault.message, fault.at);
    return unset || checked.faults.length > 0 ? 'info' : String(checked.value.level);
  }
}

/** Tells of every variable that has no value and no default. Whether there was one. */
export function reportUnset({ optionsPath, references }: Pick<Entry, 'optionsPath' | 'references'>, problems: Problems): boolean {
  const unset = references.filter(({ from }) => from === 'unset');
  for (const { path: below, name } of unset) {
    problems.add(
      [...optionsPath, ...below],
      `the variable ${name} is not set; set it, in .env for example, or write \${${name}:-default}`,
      'value',
    );
  }
  return unset.length > 0;
}

function topLevelKeys({ plugin }: Entry): readonly string[] {
  return Object.keys(plugin?.definition.configSchema.properties ?? {});
}

function isMap(value: unknown): value is Options {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function orLiteral({ literals = [] }: SectionLayout, before: string): string {
  return literals.length === 0 ? '' : `${before} ${literals.map((word) => `"${word}"`).join(' or ')}`;
}
