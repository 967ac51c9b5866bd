import { createRequire } from 'node:module';
import type { Tool } from '@plugboard/kernel';
import { parseJson } from '@plugboard/kernel/contracts';
import type { Ajv, ValidateFunction } from 'ajv';
import { checkParts, isSimple } from './schema-parts.js';

const require = createRequire(import.meta.url);

/** The beginning of a result whose call has unreadable arguments. */
export const INVALID_JSON = 'The arguments are not a valid JSON';

/** Tool schemas come from many sources: unknown keywords and formats are ignored. */
const OPTIONS = { strict: false, allErrors: true, validateFormats: false, logger: false } as const;

/** The meta-schema is slow to compile, and is needed only by a schema that refers to it. */
const WITHOUT_META_SCHEMA = { meta: false, validateSchema: false } as const;

/**
 * Many MCP servers write draft 7, in which `items` may be a list. Everything else is read as
 * 2020-12, MCP's default. ajv is loaded when it is needed: that takes as long as the start of
 * Node.js.
 */
function dialectOf(name: unknown): typeof Ajv {
  const isDraft7 = typeof name === 'string' && /draft-0[67]\//.test(name);
  return isDraft7
    ? (require('ajv') as typeof import('ajv')).Ajv
    : (require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')).Ajv2020;
}

/** Parses and validates the arguments of a tool call. */
export type ArgumentsValidator = (text: string) => ArgumentsResult;

type ArgumentsResult =
  | { readonly input: Readonly<Record<string, unknown>> }
  /** What is wrong, as a message for the model. */
  | { readonly fault: string };

/**
 * Compiles the schema of a tool, once: a schema that is surely valid with the first call, any other
 * at once.
 *
 * @throws if the tool's schema is invalid.
 */
export function argumentsValidator(tool: Tool): ArgumentsValidator {
  const { $schema: dialect, ...own } = tool.inputSchema;
  const schema = { type: 'object', ...own };
  checkSchema(() => checkParts(schema) ?? JSON.stringify(schema));
  let validate = isSimple(schema) ? undefined : compile(schema, dialect);
  return (text) => {
    validate ??= compile(schema, dialect);
    return check(text, validate);
  };
}

/**
 * Compiles each schema in a new instance. An instance never frees its compiled schemas, and tool
 * servers may report changed lists for months.
 */
function compile(schema: object, dialect: unknown): ValidateFunction {
  const Dialect = dialectOf(dialect);
  const options = { ...OPTIONS, useDefaults: true, ...(refersToMetaSchema(schema) ? {} : WITHOUT_META_SCHEMA) };
  return checkSchema(() => new Dialect(options).compile(schema));
}

function checkSchema<T>(work: () => T): T {
  try {
    return work();
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
