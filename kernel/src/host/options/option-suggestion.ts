import { nearest, suggestion } from '../base/nearest.js';
import type { JsonSchema } from './schema-types.js';

/**
 * Ends the message about an unknown option. A known option of an object below the schema is
 * suggested with its place: `, did you mean params: { temperature: … }?`.
 * @param known keys that can stand beside those of the schema.
 */
export function optionSuggestion(key: string, schema: JsonSchema, known: readonly string[]): string {
  const names = [...Object.keys(schema.properties ?? {}), ...known];
  const nested = nestedOptions(schema);
  const last = (path: readonly string[]) => path.at(-1) ?? '';
  const near = nearest(key, names) === undefined ? nearest(key, nested.map(last)) : undefined;
  const meant = nested.find((path) => last(path) === key) ?? nested.find((path) => last(path) === near);
  return meant === undefined ? suggestion(key, names) : `, did you mean ${asYaml(meant)}?`;
}

/**
 * The paths of the options in objects below a schema, outer ones first. A map with free keys names
 * its usual ones in `propertyNames.examples`.
 */
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
