import { isObject, isText } from '../json/json.js';
import { inlineRefs } from './inline-refs.js';
import type { SchemaBudget } from './schema-budget.js';

type Schema = Readonly<Record<string, unknown>>;

/** Keywords that strict servers refuse. None changes what is valid JSON for a tool. */
const DROPPED: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  '$anchor',
  '$comment',
  '$defs',
  'definitions',
  'default',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  'format',
  'pattern',
  'patternProperties',
  'propertyNames',
  'unevaluatedProperties',
  'contentEncoding',
  'contentMediaType',
  'if',
  'then',
  'else',
  'not',
  'dependentRequired',
  'dependentSchemas',
]);

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const SCHEMAS = ['items', 'additionalProperties'];
const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];

/**
 * Translates a JSON Schema for servers that validate it strictly: without references, without
 * annotations and keywords that they refuse. The tool itself still validates its arguments with the
 * schema as it is.
 */
export function strictSchema(root: Schema, budget: SchemaBudget): Schema {
  return translate(root, root, 0, budget);
}

function translate(original: Schema, root: Schema, depth: number, budget: SchemaBudget): Schema {
  const schema = inlineRefs(original, root, depth, budget);
  const result: Record<string, unknown> = Object.fromEntries(Object.entries(schema).filter(([key]) => !DROPPED.has(key)));
  for (const key of SCHEMAS) if (isObject(result[key])) result[key] = translate(result[key], root, depth + 1, budget);
  for (const key of LISTS) {
    const list = result[key];
    if (Array.isArray(list)) result[key] = list.map((one) => (isObject(one) ? translate(one, root, depth + 1, budget) : one));
  }
  if (isObject(result.properties)) {
    const properties = Object.entries(result.properties);
    result.properties = Object.fromEntries(
      properties.map(([name, value]) => [name, isObject(value) ? translate(value, root, depth + 1, budget) : {}]),
    );
  }
  // Moonshot wants the type in the branches, and not beside them.
  if (Array.isArray(result.anyOf) && isText(result.type)) {
    const { type, anyOf, ...rest } = result;
    return {
      ...rest,
      anyOf: anyOf.map((branch) => (isObject(branch) && branch.type === undefined ? { type, ...branch } : branch)),
    };
  }
  return result;
}
