import { nearest, type Synonyms, suggestion, synonymOf } from '../base/nearest.js';
import type { JsonSchema } from './schema-types.js';

/** What can be suggested besides the options of a schema. */
export interface Suggestions {
  /** Keys that can stand beside those of the schema. */
  readonly keys: readonly string[];
  readonly synonyms: Synonyms;
}

export const NO_SUGGESTIONS: Suggestions = { keys: [], synonyms: {} };

/**
 * Ends the message about an unknown option. A known option of an object below the schema is
 * suggested with its place: `, did you mean params: { temperature: … }?`.
 */
export function optionSuggestion(key: string, schema: JsonSchema, { keys, synonyms }: Suggestions): string {
  const names = [...Object.keys(schema.properties ?? {}), ...keys];
  const synonym = synonymOf(key, names, synonyms);
  if (synonym !== undefined) return `, did you mean "${synonym}"?`;
  const nested = nestedOptions(schema);
  const last = (path: readonly string[]) => path.at(-1) ?? '';
  const near = nearest(key, names) === undefined ? nearest(key, nested.map(last)) : undefined;
  const meant = nested.find((path) => last(path) === key) ?? nested.find((path) => last(path) === near);
  return meant === undefined ? suggestion(key, names) : `, did you mean ${asYaml(meant)}?`;
}

/** The paths of options in nested objects, outer ones first, with examples of free keys. */
function nestedOptions(schema: JsonSchema): string[][] {
  const objects = Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    [property, ...(property.anyOf ?? []), ...(property.oneOf ?? [])].map((branch) => ({ name, branch })),
  );
  return [
    ...objects.flatMap(({ name, branch: { properties = {}, propertyNames } }) =>
      [...Object.keys(properties), ...(propertyNames?.examples ?? []).map(String)].map((key) => [name, key]),
    ),
    ...objects.flatMap(({ name, branch }) => nestedOptions(branch).map((path) => [name, ...path])),
  ];
}

/** `params: { temperature: … }` */
function asYaml(path: readonly string[]): string {
  return path.reduceRight((inner, key, index) => (index === path.length - 1 ? `${key}: …` : `${key}: { ${inner} }`), '');
}
