import { withoutCombination } from '@plugboard/kernel/contracts';
import { isObject } from '../json/json.js';
import type { SchemaForm } from '../provider/dialect.js';
import { geminiSchema } from './gemini-schema.js';
import { SchemaBudget } from './schema-budget.js';
import { strictSchema } from './strict-schema.js';

type Schema = Readonly<Record<string, unknown>>;

/** Schemas that were translated before. A schema belongs to a tool and lives as long. */
const translated: Readonly<Record<SchemaForm, WeakMap<Schema, Schema>>> = {
  plain: new WeakMap(),
  gemini: new WeakMap(),
  strict: new WeakMap(),
};

/**
 * The JSON Schema of a tool's arguments in the form that a server accepts.
 *
 * @param budget of the request.
 * @throws SchemaTooLarge
 */
export function toolSchema(schema: Schema, form: SchemaForm, budget = new SchemaBudget(schema)): Schema {
  let result = translated[form].get(schema);
  if (result === undefined) {
    const translate = {
      plain: () => schema,
      gemini: () => geminiSchema(schema, budget),
      strict: () => strictSchema(schema, budget),
    };
    result = withProperties(withoutCombination(budget.translate(translate[form])));
    translated[form].set(schema, result);
  }
  return result;
}

/** OpenAI and others refuse an object schema without `properties`. */
function withProperties(schema: Schema): Schema {
  const isComplete = schema.type === 'object' && isObject(schema.properties);
  return isComplete ? schema : { ...schema, type: 'object', properties: isObject(schema.properties) ? schema.properties : {} };
}
