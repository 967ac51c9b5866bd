/**
 * Keywords of JSON Schema that hold a schema (`items` of draft 7: or a list of them), a list of
 * schemas, or a map of schemas.
 */
const HOLDERS: ReadonlySet<string> = new Set([
  ...['items', 'additionalItems', 'unevaluatedItems', 'contains', 'additionalProperties', 'unevaluatedProperties'],
  ...['propertyNames', 'not', 'if', 'then', 'else'],
]);
const LISTS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions']);
const TEXTS: ReadonlySet<string> = new Set(['title', 'description']);

/**
 * Checks what ajv's compiler does not: that each part of a schema is a schema, and the texts that
 * model servers require. ajv can check it with the meta-schema of JSON Schema, but compiling that
 * takes 40 ms.
 * @throws Error that names the part.
 */
export function checkParts(schema: unknown, path = 'it'): void {
  if (typeof schema === 'boolean') return;
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) throw fault(path, 'an object or a boolean');
  for (const [keyword, value] of Object.entries(schema)) {
    const here = `${path}/${keyword}`;
    if (MAPS.has(keyword)) checkAll(map(value, here), here);
    else if (LISTS.has(keyword) || (keyword === 'items' && Array.isArray(value))) checkAll(list(value, here), here);
    else if (HOLDERS.has(keyword)) checkParts(value, here);
    else if (keyword === 'required') for (const [index, name] of list(value, here)) checkText(name, `${here}/${index}`);
    else if (TEXTS.has(keyword)) checkText(value, here);
  }
}

/** Keywords that may refuse more when a schema in one of them accepts more: left out together. */
const STRICTER: readonly (readonly string[])[] = [
  ['not'],
  ['oneOf'],
  ['if', 'then', 'else'],
  ['contains', 'minContains', 'maxContains'],
];
/** Keywords that apply to what the others leave over. */
const LEFTOVERS = ['additionalProperties', 'unevaluatedProperties', 'unevaluatedItems'];

type Schema = Readonly<Record<string, unknown>>;

/**
 * The schema without these patterns, and without what would refuse more when they are gone: it
 * accepts everything that the whole schema accepts. The same object if it has none of them.
 */
export function withoutPatterns(schema: Schema, patterns: ReadonlySet<string>): Schema {
  const without = (part: unknown): unknown => {
    if (Array.isArray(part)) return mapped(part, without) ?? part;
    return typeof part === 'object' && part !== null ? withoutPatterns(part as Schema, patterns) : part;
  };
  const changed: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    const part = MAPS.has(keyword)
      ? mapWithout(value as Schema, without, keyword === 'patternProperties' ? patterns : new Set())
      : HOLDERS.has(keyword) || LISTS.has(keyword)
        ? without(value)
        : keyword === 'pattern' && patterns.has(String(value))
          ? undefined
          : value;
    if (part !== value) changed[keyword] = part;
  }
  const keywords = Object.keys(changed);
  if (keywords.length === 0) return schema;
  const groups = STRICTER.filter((group) => group.some((keyword) => keyword in changed));
  const gone = new Set([...groups.flat(), ...LEFTOVERS, ...keywords.filter((keyword) => changed[keyword] === undefined)]);
  return Object.fromEntries(Object.entries({ ...schema, ...changed }).filter(([keyword]) => !gone.has(keyword)));
}

function mapWithout(parts: Schema, without: (part: unknown) => unknown, names: ReadonlySet<string>): Schema {
  const entries = Object.entries(parts);
  const kept = entries.filter(([name]) => !names.has(name));
  const values = mapped(
    kept.map(([, part]) => part),
    without,
  );
  if (!values && kept.length === entries.length) return parts;
  return Object.fromEntries(kept.map(([name, part], index) => [name, values ? values[index] : part]));
}

/** Undefined if nothing changes. */
function mapped(parts: readonly unknown[], change: (part: unknown) => unknown): readonly unknown[] | undefined {
  const result = parts.map(change);
  return result.some((part, index) => part !== parts[index]) ? result : undefined;
}

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

/**
 * Whether ajv can surely compile a schema whose parts are checked: one that has the keywords of
 * most tools, and nothing that refers to another schema or that is a pattern.
 */
export function isSimple(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return typeof schema === 'boolean';
  return Object.entries(schema).every(([keyword, value]) => {
    if (keyword === 'type') return TYPES.has(value);
    if (keyword === 'properties') return Object.values(value).every(isSimple);
    if (keyword === 'items' || keyword === 'additionalProperties') return isSimple(value);
    if (keyword === 'enum') return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
    return ['required', 'title', 'description', 'default'].includes(keyword);
  });
}

function checkAll(parts: readonly (readonly [string | number, unknown])[], path: string): void {
  for (const [name, part] of parts) checkParts(part, `${path}/${name}`);
}

function checkText(value: unknown, path: string): void {
  if (typeof value !== 'string') throw fault(path, 'text');
}

function list(value: unknown, path: string): [number, unknown][] {
  if (!Array.isArray(value)) throw fault(path, 'a list');
  return [...value.entries()];
}

function map(value: unknown, path: string): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fault(path, 'a map');
  return Object.entries(value);
}

function fault(path: string, wanted: string): Error {
  return new Error(`${path} must be ${wanted}`);
}
