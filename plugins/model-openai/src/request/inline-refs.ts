import { isObject } from '../json/json.js';
import type { SchemaBudget } from './schema-budget.js';

type Schema = Readonly<Record<string, unknown>>;

/** Follows a `$ref` into the schema's definitions. Members beside it win. @throws SchemaTooLarge */
export function inlineRefs(schema: Schema, root: Schema, depth: number, budget: SchemaBudget): Schema {
  budget.take(schema);
  if (typeof schema.$ref !== 'string') return schema;
  const { $ref, ...beside } = schema;
  const target = depth < budget.depth ? targetOf($ref, root) : undefined;
  return target === undefined ? beside : inlineRefs({ ...target, ...beside }, root, depth + 1, budget);
}

/** `#/$defs/point` */
function targetOf(ref: string, root: Schema): Schema | undefined {
  if (!ref.startsWith('#')) return undefined;
  let value: unknown = root;
  for (const step of ref.slice(1).split('/').filter(Boolean)) {
    const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
    value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  return isObject(value) ? value : undefined;
}

/** A malformed escape stands for itself. */
function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}
