import { isObject } from '../json/json.js';

type Schema = Readonly<Record<string, unknown>>;

/** How deep references are replaced. A schema that refers to itself ends there. */
const MAX_DEPTH = 12;

/** Follows a `$ref` into the schema's own definitions. Members beside the reference win. */
export function inlineRefs(schema: Schema, root: Schema, depth: number): Schema {
  if (typeof schema.$ref !== 'string') return schema;
  const { $ref, ...beside } = schema;
  const target = depth < MAX_DEPTH ? targetOf($ref, root) : undefined;
  return target === undefined ? beside : inlineRefs({ ...target, ...beside }, root, depth + 1);
}

/** `#/$defs/point` */
function targetOf(ref: string, root: Schema): Schema | undefined {
  if (!ref.startsWith('#')) return undefined;
  let value: unknown = root;
  for (const step of ref.slice(1).split('/').filter(Boolean)) {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  return isObject(value) ? value : undefined;
}
