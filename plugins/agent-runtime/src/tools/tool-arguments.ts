import { parseJson, type Tool } from '@plugboard/kernel';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

/** The beginning of a result whose call has unreadable arguments. */
export const INVALID_JSON = 'The arguments are not a valid JSON';

/** Tool schemas come from many sources: unknown keywords and formats are ignored. */
const OPTIONS = { strict: false, allErrors: true, validateFormats: false, addUsedSchema: false, logger: false } as const;

/** Knows the rules for schemas. Takes a long time to create. */
const rules = new Ajv2020(OPTIONS);

/** Parses and validates the arguments of a tool call. Compiled once per tool. */
export type ArgumentsValidator = (text: string) => ArgumentsResult;

export type ArgumentsResult =
  | { readonly input: Readonly<Record<string, unknown>> }
  /** What is wrong, as a message for the model. */
  | { readonly fault: string };

/** @throws if the tool's schema is invalid. */
export function argumentsValidator(tool: Tool): ArgumentsValidator {
  const { $schema: _, ...schema } = tool.inputSchema;
  const validate = compile({ type: 'object', ...schema });
  return (text) => check(text, validate);
}

/**
 * Compiles each schema in an instance of its own. An instance keeps all it has compiled for as long as it lives, and tool servers may
 * report changed lists for months.
 */
function compile(schema: object): ValidateFunction {
  if (!rules.validateSchema(schema)) throw new Error(`schema is invalid: ${rules.errorsText()}`);
  const refersToRules = JSON.stringify(schema).includes('json-schema.org/');
  return new Ajv2020(refersToRules ? OPTIONS : { ...OPTIONS, meta: false, validateSchema: false }).compile(schema);
}

function check(text: string, validate: ValidateFunction): ArgumentsResult {
  let input: unknown;
  try {
    input = isNothing(text) ? {} : parseJson(text);
  } catch {
    return notAnObject(text);
  }
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return notAnObject(text);
  try {
    if (validate(input)) return { input: input as Record<string, unknown> };
  } catch (error) {
    return { fault: `The arguments could not be validated: ${(error as Error).message}` };
  }
  const errors = (validate.errors ?? []).slice(0, 5).map((error) => `${error.instancePath || 'arguments'} ${error.message}`);
  return { fault: `The arguments do not match the tool's schema: ${errors.join('; ')}.` };
}

function notAnObject(text: string): ArgumentsResult {
  return { fault: `${INVALID_JSON} object: ${text.slice(0, 200).toWellFormed()}` };
}

/** No arguments, as some models write them. */
export function isNothing(text: string): boolean {
  return text.trim() === '' || text.trim() === 'null';
}
