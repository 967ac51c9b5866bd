import type { Tool } from '@plugboard/kernel';
import { compileSchema, parseJson, type ValueValidator } from '@plugboard/kernel/contracts';
import { checkParts, isSimple, withoutPatterns } from './schema-parts.js';

/** The beginning of a result whose call has unreadable arguments. */
export const INVALID_JSON = 'The arguments are not a valid JSON';

/**
 * Characters of arguments of which all mistakes are collected. The work for many mistakes grows
 * with their square, so of longer ones only the first is found.
 */
const MAX_COLLECTED = 16_384;

/** Mistakes that the model is told of. */
const MAX_MISTAKES = 5;

type Schema = Readonly<Record<string, unknown>>;

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
 * @param onUnmatchable receives the patterns that cannot be matched in linear time (S-57). The
 *   arguments are not checked against them.
 * @throws if the tool's schema is invalid.
 */
export function argumentsValidator(tool: Tool, onUnmatchable: (patterns: readonly string[]) => void): ArgumentsValidator {
  const { $schema, ...own } = tool.inputSchema;
  let schema: Schema = { type: 'object', ...own };
  checkSchema(() => checkParts(schema) ?? JSON.stringify(schema));
  const unmatchable = new Set<string>();
  let validate = isSimple(schema) ? undefined : compile({ ...schema, $schema }, true, (pattern) => unmatchable.add(pattern));
  if (unmatchable.size > 0) {
    schema = withoutPatterns(schema, unmatchable);
    validate = compile({ ...schema, $schema }, true);
    onUnmatchable([...unmatchable]);
  }
  let validateLong: ValueValidator | undefined;
  return (text) => {
    if (text.length > MAX_COLLECTED) {
      validateLong ??= compile({ ...schema, $schema }, false);
      return check(text, validateLong);
    }
    validate ??= compile({ ...schema, $schema }, true);
    return check(text, validate);
  };
}

function compile(
  schema: Schema,
  allErrors: boolean,
  linearPatterns: true | ((unmatchable: string) => void) = true,
): ValueValidator {
  return checkSchema(() => compileSchema(schema, { useDefaults: true, allErrors, linearPatterns }));
}

function checkSchema<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Error(`schema is invalid: ${(error as Error).message}`, { cause: error });
  }
}

function check(text: string, validate: ValueValidator): ArgumentsResult {
  let input: unknown;
  try {
    input = isEmptyArguments(text) ? {} : parseJson(text);
  } catch {
    return notAnObject(text);
  }
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return notAnObject(text);
  try {
    const mistakes = validate(input).slice(0, MAX_MISTAKES);
    if (mistakes.length === 0) return { input: input as Record<string, unknown> };
    return { fault: `The arguments do not match the tool's schema: ${mistakes.map(({ message }) => message).join('; ')}.` };
  } catch (error) {
    return { fault: `The arguments could not be validated: ${(error as Error).message}` };
  }
}

function notAnObject(text: string): ArgumentsResult {
  return { fault: `${INVALID_JSON} object: ${text.slice(0, 200).toWellFormed()}` };
}

/** Whether the text means "no arguments", in the forms that models write. */
export function isEmptyArguments(text: string): boolean {
  return text.trim() === '' || text.trim() === 'null';
}

/**
 * The arguments of a call as they run, as JSON: with the defaults of the tool's schema, and the
 * properties in its order. A person decides about this text (S-74).
 */
export function completeArguments(input: Readonly<Record<string, unknown>>, schema: Schema): string {
  return JSON.stringify(inOrder(input, schema));
}

function inOrder(value: unknown, schema: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { properties, items } = fieldsOf(schema);
  if (Array.isArray(value)) return value.map((item: unknown) => inOrder(item, items));
  const known = fieldsOf(properties);
  const fields = value as Schema;
  const names = Object.keys(known).filter((name) => Object.hasOwn(fields, name));
  const others = Object.keys(fields).filter((name) => !Object.hasOwn(known, name));
  return Object.fromEntries([...names, ...others].map((name) => [name, inOrder(fields[name], known[name])]));
}

function fieldsOf(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}
