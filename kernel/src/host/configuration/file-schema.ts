import { DURATION_PATTERN } from '../options/duration.js';
import type { JsonSchema } from '../options/schema-types.js';
import { SIZE_PATTERN } from '../options/size.js';
import type { LoadedPlugin } from '../plugin/loader.js';
import { commonSchema, type Entry } from './entries.js';
import type { FileLayout, SectionLayout } from './file-layout.js';
import { LOG_SCHEMA } from './log-settings.js';

/** An entry of the file, and its plugin if it was found. */
export type DescribedEntry = Pick<Entry, 'name' | 'section' | 'use' | 'plugin'>;

/** Plain JSON Schema (draft 7, which every editor supports). */
type PlainSchema = Readonly<Record<string, unknown>>;

/** A text that contains `${NAME}`: an editor cannot know its value. */
const VARIABLE: PlainSchema = { type: 'string', pattern: String.raw`\$\{` };

const PATTERNS = {
  duration: DURATION_PATTERN.source,
  size: SIZE_PATTERN.source,
  url: '^[A-Za-z][A-Za-z0-9+.-]*:',
  date: String.raw`^\d{4}-\d{2}-\d{2}`,
} as const;

const NO_OPTIONS: JsonSchema = { type: 'object', properties: {}, additionalProperties: false };

/** Builds the JSON Schema of the whole file, for editors: the sections, and the options of the plugins that the file uses. */
export function fileSchema({ sections }: FileLayout, entries: readonly DescribedEntry[]): PlainSchema {
  const definitions: Record<string, PlainSchema> = {};
  const properties: Record<string, PlainSchema> = {};
  for (const [section, layout] of Object.entries(sections)) {
    const ofSection = entries.filter((entry) => entry.section === section);
    for (const { plugin } of ofSection) {
      if (plugin === undefined) continue;
      definitions[definitionName(section, plugin.name)] = entryDefinition(layout, plugin);
      if (layout.topLevelOptions) Object.assign(properties, editable(plugin.options.schema).properties);
    }
    properties[section] = sectionSchema(section, layout, ofSection);
  }
  properties.log = editable(LOG_SCHEMA);
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Plugboard configuration',
    type: 'object',
    properties: { $schema: { type: 'string' }, ...properties },
    required: Object.keys(sections).filter((section) => sections[section]?.required),
    additionalProperties: false,
    definitions,
  };
}

/** Returns a name that needs no escaping in a reference. */
function definitionName(section: string, plugin: string): string {
  return `${section}.${plugin.replaceAll(/[^\w@.-]/g, '.')}`;
}

/** The options of a plugin, with the keys that every entry of the section can have. */
function entryDefinition(layout: SectionLayout, { options, definition }: LoadedPlugin): PlainSchema {
  const common = commonSchema(layout);
  const { properties, required = [], ...rest } = layout.topLevelOptions ? NO_OPTIONS : options.schema;
  return editable({
    ...rest,
    type: ['object', 'null'],
    description: definition.summary,
    properties: { ...common.properties, ...properties },
    required: [...(common.required ?? []), ...required],
  });
}

/** The options of an entry depend on its `use`, or on its key if it has none. */
function sectionSchema(section: string, layout: SectionLayout, entries: readonly DescribedEntry[]): PlainSchema {
  const known = entries.flatMap(({ use, name, plugin }) => (plugin === undefined ? [] : [{ use, name, plugin: plugin.name }]));
  const optionsOf = (plugin: string) => ({ $ref: `#/definitions/${definitionName(section, plugin)}` });
  const byUse = [...new Map(known.map((entry) => [entry.use, entry.plugin]))].map(([use, plugin]) => ({
    if: { not: { properties: { use: { const: use } }, required: ['use'] } },
    else: optionsOf(plugin),
  }));
  const { properties } = editable(commonSchema(layout));
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

/** Converts a schema for editors: `${NAME}` is valid wherever the schema is narrower than text. */
function editable(schema: JsonSchema): PlainSchema {
  const {
    secret,
    format,
    description,
    default: fallback,
    properties,
    additionalProperties,
    items,
    anyOf,
    oneOf,
    ...rest
  } = schema;
  const about = {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
  };
  const branches = anyOf ?? oneOf; // a variable may match several branches, which oneOf forbids
  const plain = {
    ...rest,
    ...(format === undefined ? {} : { pattern: PATTERNS[format] }),
    ...(properties === undefined ? {} : { properties: mapValues(properties, editable) }),
    ...(additionalProperties === undefined
      ? {}
      : {
          additionalProperties: typeof additionalProperties === 'object' ? editable(additionalProperties) : additionalProperties,
        }),
    ...(items === undefined ? {} : { items: editable(items) }),
    ...(branches === undefined ? {} : { anyOf: branches.map(editable) }),
  };
  return isNarrow(schema) ? { ...about, anyOf: [plain, VARIABLE] } : { ...about, ...plain };
}

/** Whether the text `${NAME}` may be invalid under the schema. */
function isNarrow({ type, format, enum: choice, const: only, pattern, maxLength }: JsonSchema): boolean {
  if ([format, choice, only, pattern, maxLength].some((limit) => limit !== undefined)) return true;
  return [type ?? []].flat().some((one) => one === 'number' || one === 'integer' || one === 'boolean');
}

function mapValues<T, U>(values: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]));
}
