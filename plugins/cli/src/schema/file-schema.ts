import type { JsonSchema } from '@plugboard/kernel';
import {
  commonSchema,
  DURATION_PATTERN,
  type FileLayout,
  LOG_SCHEMA,
  type LoadedPlugin,
  type SectionLayout,
  SIZE_PATTERN,
} from '@plugboard/kernel/internal';

/** An entry of the file, and its plugin if it was found. */
export interface DescribedEntry {
  readonly name: string;
  readonly section: string;
  readonly use: string;
  readonly plugin: LoadedPlugin | undefined;
}

/** Plain JSON Schema (draft 7, which every editor supports). */
type PlainSchema = Readonly<Record<string, unknown>>;

/** A text that contains `${NAME}`: an editor cannot know its value. */
const VARIABLE: PlainSchema = { type: 'string', pattern: String.raw`\$\{` };

const PATTERNS = {
  duration: DURATION_PATTERN.source,
  size: SIZE_PATTERN.source,
  url: '^[A-Za-z][A-Za-z0-9+.-]*:',
  date: String.raw`^\d{4}-\d{2}-\d{2}`,
  package: String.raw`^(@[\w.~-]+/)?[\w~-]|^\.{0,2}/`,
} as const;

/** The formats in words, for descriptions, and for editors in place of the pattern. */
const FORMATS = {
  duration: 'A duration: a whole number with the unit ms, s, m, h or d, such as `30s`.',
  size: 'A size: a whole number with the unit b, kb, mb or gb, such as `64kb`, in powers of 1024.',
  url: 'A URL with its scheme, such as `https://example.com`.',
  date: 'A date in the form of ISO 8601, such as `2027-01-31`.',
  package: 'An installed package, or the path of a module.',
} as const;

/** The names that an editor can complete, copied into the schema: it cannot refer to the file. */
interface KnownNames {
  /** The keys of a section, or of another map of the top level. */
  keys(section: string): readonly string[];
  /** The short names of the installed plugins for a section. */
  installed(section: string): readonly string[];
}

const NO_OPTIONS: JsonSchema = { type: 'object', properties: {}, additionalProperties: false };

/** Builds the JSON Schema of the whole file, with the options of the plugins that it uses. */
export function fileSchema({ sections }: FileLayout, entries: readonly DescribedEntry[], names: KnownNames): PlainSchema {
  return new FileSchema(sections, entries, names).whole();
}

class FileSchema {
  readonly #sections: FileLayout['sections'];
  readonly #entries: readonly DescribedEntry[];
  readonly #names: KnownNames;
  readonly #definitions: Record<string, PlainSchema> = {};

  constructor(sections: FileLayout['sections'], entries: readonly DescribedEntry[], names: KnownNames) {
    this.#sections = sections;
    this.#entries = entries;
    this.#names = names;
  }

  whole(): PlainSchema {
    const properties: Record<string, PlainSchema> = {};
    for (const [section, layout] of Object.entries(this.#sections)) {
      const ofSection = this.#entries.filter((entry) => entry.section === section);
      for (const { plugin } of ofSection) {
        if (plugin === undefined) continue;
        this.#definitions[definitionName(section, plugin.name)] = this.#entryDefinition(layout, plugin);
        if (layout.topLevelOptions) Object.assign(properties, this.#editable(plugin.options.schema).properties);
      }
      properties[section] = {
        ...(layout.description && { description: layout.description }),
        ...this.#section(section, layout, ofSection),
      };
    }
    properties.log = { description: 'Settings of the log.', ...this.#editable(LOG_SCHEMA) };
    const $schema = { type: 'string', description: 'The path of this schema, for editors.' };
    return {
      $schema: 'http://json-schema.org/draft-07/schema#',
      title: 'Plugboard configuration',
      description:
        'Knows the plugins and the names that the file had when `plugboard schema` wrote it. ' +
        'Write it again after you add an entry.',
      type: 'object',
      properties: { $schema, ...properties },
      required: Object.keys(this.#sections).filter((section) => this.#sections[section]?.required),
      additionalProperties: false,
      definitions: this.#definitions,
    };
  }

  /** The options of a plugin, with the keys that every entry of the section can have. */
  #entryDefinition(layout: SectionLayout, { options, definition }: LoadedPlugin): PlainSchema {
    const common = commonSchema(layout);
    const { properties, required = [], ...rest } = layout.topLevelOptions ? NO_OPTIONS : options.schema;
    return this.#editable({
      ...rest,
      type: ['object', 'null'],
      description: definition.summary,
      properties: { ...common.properties, ...properties },
      required: [...(common.required ?? []), ...required],
    });
  }

  /** The options of an entry depend on its `use`, or on its key if it has none. */
  #section(section: string, layout: SectionLayout, entries: readonly DescribedEntry[]): PlainSchema {
    const known = entries.flatMap(({ use, name, plugin }) => (plugin === undefined ? [] : [{ use, name, plugin: plugin.name }]));
    const optionsOf = (plugin: string) => ({ $ref: `#/definitions/${definitionName(section, plugin)}` });
    const byUse = [...new Map(known.map((entry) => [entry.use, entry.plugin]))].map(([use, plugin]) => ({
      if: { not: { properties: { use: { const: use } }, required: ['use'] } },
      else: optionsOf(plugin),
    }));
    const common = this.#editable(commonSchema(layout)).properties as Readonly<Record<string, PlainSchema>>;
    const uses = [...known.map(({ use }) => use), ...this.#names.installed(section)];
    const properties = { ...common, use: completed(common.use ?? {}, uses) };
    const entry = { type: ['object', 'null'], properties, ...(byUse.length > 0 ? { allOf: byUse } : {}) };
    if (layout.shape === 'single') return { ...entry, required: ['use'] };

    const byName = known
      .filter(({ use, name }) => use === name)
      .map(({ name, plugin }) => [name, { ...entry, allOf: [{ if: { required: ['use'] }, else: optionsOf(plugin) }, ...byUse] }]);
    const map = {
      type: layout.strict ? 'object' : ['object', 'null'],
      properties: Object.fromEntries(byName),
      additionalProperties: entry,
    };
    return layout.literals === undefined ? map : { anyOf: [map, { enum: layout.literals }, VARIABLE] };
  }

  /** Converts a schema for editors: `${NAME}` is valid where the schema is narrower than text. */
  #editable(schema: JsonSchema): PlainSchema {
    const { secret, nameOf, format, description, default: fallback, properties, additionalProperties, items, ...other } = schema;
    const { anyOf, oneOf, ...rest } = other;
    const words = [description, format && FORMATS[format]].filter((sentence) => sentence !== undefined).join(' ');
    const about = {
      ...(words === '' ? {} : { description: words }),
      ...(fallback === undefined ? {} : { default: fallback }),
      ...(secret === true ? { writeOnly: true } : {}),
    };
    const convert = (one: JsonSchema) => this.#editable(one);
    const branches = anyOf ?? oneOf; // a variable may match several branches, which oneOf forbids
    const plain = {
      ...rest,
      ...(format === undefined ? {} : { pattern: PATTERNS[format], patternErrorMessage: FORMATS[format] }),
      ...(properties === undefined ? {} : { properties: mapValues(properties, convert) }),
      ...(additionalProperties === undefined
        ? {}
        : {
            additionalProperties: typeof additionalProperties === 'object' ? convert(additionalProperties) : additionalProperties,
          }),
      ...(items === undefined ? {} : { items: convert(items) }),
      ...(branches === undefined ? {} : { anyOf: branches.map(convert) }),
    };
    if (isNarrow(schema)) return { ...about, anyOf: [plain, VARIABLE] };
    if (nameOf === undefined) return { ...about, ...plain };
    const names = [...this.#names.keys(nameOf), ...(schema.examples ?? []).map(String)];
    return completed({ ...about, ...plain }, names);
  }
}

/** A text for which editors offer these words. Others stay valid: `plugboard check` decides. */
function completed({ description, default: fallback, ...text }: PlainSchema, words: readonly string[]): PlainSchema {
  const about = {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
  };
  return words.length === 0 ? { ...about, ...text } : { ...about, anyOf: [{ enum: [...new Set(words)] }, text] };
}

/** Returns a name that needs no escaping in a reference. */
function definitionName(section: string, plugin: string): string {
  return `${section}.${plugin.replaceAll(/[^\w@.-]/g, '.')}`;
}

/** Whether the text `${NAME}` may be invalid under the schema. */
function isNarrow({ type, format, enum: choice, const: only, pattern, maxLength }: JsonSchema): boolean {
  if ([format, choice, only, pattern, maxLength].some((limit) => limit !== undefined)) return true;
  return [type ?? []].flat().some((one) => one === 'number' || one === 'integer' || one === 'boolean');
}

function mapValues<T, U>(values: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]));
}
