import type { Tool } from '@plugboard/kernel';
import { parseJson } from '@plugboard/kernel/contracts';
import { Ajv } from 'ajv';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { checkParts } from './schema-parts.js';

/** The beginning of a result whose call has unreadable arguments. */
export const INVALID_JSON = 'The arguments are not a valid JSON';

/** Tool schemas come from many sources: unknown keywords and formats are ignored. */
const OPTIONS = { strict: false, allErrors: true, validateFormats: false, logger: false } as const;

/** The meta-schema is slow to compile, and is needed only by a schema that refers to it. */
const WITHOUT_META_SCHEMA = { meta: false, validateSchema: false } as const;

/** Many MCP servers write draft 7, in which `items` may be a list. Everything else is read as 2020-12, MCP's default. */
function dialectOf(name: unknown): typeof Ajv | typeof Ajv2020 {
  return typeof name === 'string' && /draft-0[67]\//.test(name) ? Ajv : Ajv2020;
}

/** Parses and validates the arguments of a tool call. Compiled once per tool. */
export type ArgumentsValidator = (text: string) => ArgumentsResult;

type ArgumentsResult =
  | { readonly input: Readonly<Record<string, unknown>> }
  /** What is wrong, as a message for the model. */
  | { readonly fault: string };

/** @throws if the tool's schema is invalid. */
export function argumentsValidator(tool: Tool): ArgumentsValidator {
  const { $schema: dialect, ...schema } = tool.inputSchema;
  const validate = compile({ type: 'object', ...schema }, dialectOf(dialect));
  return (text) => check(text, validate);
}

/**
 * Compiles each schema in a new instance. An instance never frees its compiled schemas, and tool
 * servers may report changed lists for months.
 */
function compile(schema: object, Dialect: typeof Ajv | typeof Ajv2020): ValidateFunction {
  const options = { ...OPTIONS, useDefaults: true, ...(refersToMetaSchema(schema) ? {} : WITHOUT_META_SCHEMA) };
  try {
    checkParts(schema);
    return new Dialect(options).compile(schema);
  } catch (error) {
    throw new Error(`schema is invalid: ${(error as Error).message}`, { cause: error });
  }
}

function refersToMetaSchema(schema: object): boolean {
  return JSON.stringify(schema).includes('json-schema.org/');
}

function check(text: string, validate: ValidateFunction): ArgumentsResult {
  let input: unknown;
  try {
    input = isEmptyArguments(text) ? {} : parseJson(text);
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

/** Whether the text means "no arguments", in the forms that models write. */
export function isEmptyArguments(text: string): boolean {
  return text.trim() === '' || text.trim() === 'null';
}
