import { invalidRequest, type ProtocolError } from './errors.js';

/** Errors in the reference's words. A `param` is a path: `messages[0].content[1].type`. */

function invalid(param: string, code: string, message: string): ProtocolError {
  return invalidRequest(message, { param, code });
}

export function missingParameter(param: string): ProtocolError {
  return invalid(param, 'missing_required_parameter', `Missing required parameter: '${param}'.`);
}

/** @param expectation for example `an integer`. */
export function wrongType(param: string, expectation: string, value: unknown): ProtocolError {
  const message = `Invalid type for '${param}': expected ${expectation}, but got ${kindOf(value)} instead.`;
  return invalid(param, 'invalid_type', message);
}

export function wrongValue(param: string, value: string, supported: readonly string[]): ProtocolError {
  const message = `Invalid value: '${truncate(value)}'. Supported values are: ${quotedList(supported)}.`;
  return invalid(param, 'invalid_value', message);
}

/** @param why a clause, for example `it contains a control character`. */
export function invalidValue(param: string, why: string): ProtocolError {
  return invalid(param, 'invalid_value', `Invalid '${param}': ${why}.`);
}

/** A message part of a type that the model connection does not accept. */
export function unsupportedPart(param: string, type: string, connection: string): ProtocolError {
  const message = `Invalid value: '${type}'. The model connection '${connection}' takes text only.`;
  return invalid(param, 'invalid_value', message);
}

/** @param unit if not characters. */
export function stringTooLong(
  param: string,
  limit: number,
  length: number,
  unit: 'bytes' | undefined = undefined,
): ProtocolError {
  const of = unit ? ` ${unit}` : '';
  return invalidRequest(
    `Invalid '${param}': string too long. Expected a string with maximum length ${limit}${of}, but got a string with length ${length}${of} instead.`,
    { param, code: 'string_above_max_length' },
  );
}

export function arrayTooLong(param: string, limit: number, length: number): ProtocolError {
  return invalidRequest(
    `Invalid '${param}': array too long. Expected an array with maximum length ${limit}, but got an array with length ${length} instead.`,
    { param, code: 'array_above_max_length' },
  );
}

export function emptyArray(param: string): ProtocolError {
  return invalidRequest(
    `Invalid '${param}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    { param, code: 'empty_array' },
  );
}

export function outOfRange(
  param: string,
  kind: 'integer' | 'decimal',
  bound: 'minimum' | 'maximum',
  limit: number,
  value: number,
): ProtocolError {
  const [side, sign] = bound === 'minimum' ? ['below', '>='] : ['above', '<='];
  return invalidRequest(
    `Invalid '${param}': ${kind} ${side} ${bound} value. Expected a value ${sign} ${limit}, but got ${value} instead.`,
    { param, code: `${kind}_${side}_${bound === 'minimum' ? 'min' : 'max'}_value` },
  );
}

export function tooManyProperties(param: string, limit: number, count: number): ProtocolError {
  return invalidRequest(
    `Invalid '${param}': too many properties. Expected an object with at most ${limit} properties, but got an object with ${count} properties instead.`,
    { param, code: 'object_above_max_properties' },
  );
}

/** @param param the object with the property; the error's own includes the name (C-174). */
export function propertyNameTooLong(param: string, name: string, limit: number): ProtocolError {
  return invalidRequest(
    `Invalid property name in '${param}': '${ends(name)}' is too long. Expected a string with maximum length ${limit}, but got a string with length ${countCharacters(name)} instead.`,
    { param: `${param}.${name}`, code: 'property_name_above_max_length' },
  );
}

/** The first three and the last three characters. */
function ends(name: string): string {
  const first = Array.from(name.slice(0, 6)).slice(0, 3);
  const last = Array.from(name.slice(-6)).slice(-3);
  return `${first.join('')}...${last.join('')}`;
}

/** A `logit_bias` out of its range, as the reference words it: with a decimal point (C-173). */
export function logitBiasOutOfRange(value: number): ProtocolError {
  const shown = Number.isInteger(value) ? value.toFixed(1) : String(value);
  return invalidRequest(`Logit bias value ${shown} is invalid or outside of range [-100, 100]`, { param: 'logit_bias' });
}

/** `'a', 'b', and 'c'`. */
export function quotedList(words: readonly string[]): string {
  const quoted = words.map((word) => `'${word}'`);
  if (quoted.length < 3) return quoted.join(' and ');
  return `${quoted.slice(0, -1).join(', ')}, and ${quoted.at(-1)}`;
}

/** Truncates a value for a message. Strict parsers refuse an unpaired surrogate: U+FFFD. */
export function truncate(value: string): string {
  return value.length <= 64 ? value.toWellFormed() : `${value.slice(0, 61).toWellFormed()}...`;
}

/** Counts code points, as the reference protocol counts characters. */
export function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal number';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
