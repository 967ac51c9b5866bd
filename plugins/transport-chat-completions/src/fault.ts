import { type HttpError, invalidRequest } from '@plugboard/transport-http';
import type { AnySchemaObject, DefinedError } from 'ajv';

/**
 * What the caller is told of the first fault that the schema found: the reference's words, `param` and `code`.
 *
 * @param error of an ajv that is `verbose`.
 * @param body what was checked, to tell the elements of arrays from the properties of objects.
 */
export function faultOf(error: DefinedError, body: unknown): HttpError {
  const at = placeOf(error.instancePath, body);
  switch (error.keyword) {
    case 'required':
      return missing(join(at, error.params.missingProperty));
    case 'type':
      return wrongType(at, expected(error.parentSchema), error.data);
    case 'discriminator': {
      const place = join(at, error.params.tag);
      const known: string[] = error.parentSchema?.oneOf.map((shape: TaggedShape) => shape.properties[error.params.tag]?.const);
      return typeof error.params.tagValue === 'string'
        ? wrongValue(place, error.params.tagValue, known)
        : wrongType(place, `one of ${list(known)}`, error.params.tagValue);
    }
    case 'enum':
      return wrongValue(at, error.data, error.params.allowedValues);
    case 'minimum':
    case 'maximum':
      return outOfRange(at, error.keyword, error.params.limit, error);
    case 'minItems':
      return invalidRequest(
        `Invalid '${at}': empty array. Expected an array with minimum length ${error.params.limit}, but got an empty array instead.`,
        { param: at, code: 'empty_array' },
      );
    case 'maxItems':
      return arrayTooLong(at, error.params.limit, (error.data as unknown[]).length);
    case 'maxProperties':
      return invalidRequest(
        `Invalid '${at}': too many properties. Expected an object with at most ${error.params.limit} properties, but got an object with ${Object.keys(error.data as object).length} properties instead.`,
        { param: at, code: 'object_above_max_properties' },
      );
    case 'maxLength':
      return error.propertyName === undefined
        ? stringTooLong(at, error.params.limit, codePoints(error.data as string))
        : invalidRequest(
            `Invalid property name in '${at}': '${clip(error.propertyName)}' is too long. Expected a string with maximum length ${error.params.limit}, but got a string with length ${codePoints(error.propertyName)} instead.`,
            { param: at, code: 'property_name_above_max_length' },
          );
    case 'pattern':
      return invalidRequest(
        `Invalid '${at}': string does not match pattern. Expected a string that matches the pattern '${error.params.pattern}'.`,
        { param: at, code: 'invalid_value' },
      );
    default: // of a keyword that the schema does not use, or that never comes first
      return invalidRequest(`Invalid '${at}': ${error.message}.`, { param: at, code: 'invalid_value' });
  }
}

/** A parameter that must be there and is not. */
export function missing(param: string): HttpError {
  return invalidRequest(`Missing required parameter: '${param}'.`, { param, code: 'missing_required_parameter' });
}

export function wrongType(param: string, expectation: string, value: unknown): HttpError {
  return invalidRequest(`Invalid type for '${param}': expected ${expectation}, but got ${kindOf(value)} instead.`, {
    param,
    code: 'invalid_type',
  });
}

export function wrongValue(param: string, value: unknown, supported: readonly string[]): HttpError {
  return invalidRequest(`Invalid value: '${clip(String(value))}'. Supported values are: ${list(supported)}.`, {
    param,
    code: 'invalid_value',
  });
}

export function stringTooLong(param: string, limit: number, length: number, unit: 'bytes' | undefined = undefined): HttpError {
  const of = unit ? ` ${unit}` : '';
  return invalidRequest(
    `Invalid '${param}': string too long. Expected a string with maximum length ${limit}${of}, but got a string with length ${length}${of} instead.`,
    { param, code: 'string_above_max_length' },
  );
}

/** What this server cannot do, and whose silent loss would change what the caller gets. */
export function unsupportedValue(param: string, message: string): HttpError {
  return invalidRequest(message, { param, code: 'unsupported_value' });
}

interface TaggedShape {
  readonly properties: Readonly<Record<string, { readonly const: string } | undefined>>;
}

function arrayTooLong(param: string, limit: number, length: number): HttpError {
  return invalidRequest(
    `Invalid '${param}': array too long. Expected an array with maximum length ${limit}, but got an array with length ${length} instead.`,
    { param, code: 'array_above_max_length' },
  );
}

function outOfRange(param: string, bound: 'minimum' | 'maximum', limit: number, { parentSchema, data }: DefinedError): HttpError {
  const kind = parentSchema?.type === 'integer' ? 'integer' : 'decimal';
  const [side, sign] = bound === 'minimum' ? ['below', '>='] : ['above', '<='];
  return invalidRequest(
    `Invalid '${param}': ${kind} ${side} ${bound} value. Expected a value ${sign} ${limit}, but got ${data} instead.`,
    { param, code: `${kind}_${side}_${bound === 'minimum' ? 'min' : 'max'}_value` },
  );
}

/** The reference's way to write a place, `messages[0].content[1].type`, from ajv's `/messages/0/content/1/type`. */
function placeOf(pointer: string, body: unknown): string {
  let place = '';
  let here = body;
  for (const segment of pointer.split('/').slice(1)) {
    const key = segment.replaceAll('~1', '/').replaceAll('~0', '~');
    place = Array.isArray(here) ? `${place}[${key}]` : join(place, clip(key));
    here = (here as Readonly<Record<string, unknown>>)[key];
  }
  return place;
}

function join(place: string, key: string): string {
  return place === '' ? key : `${place}.${key}`;
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a decimal',
  integer: 'an integer',
  boolean: 'a boolean',
  object: 'an object',
  array: 'an array',
};

function expected(schema: AnySchemaObject | undefined): string {
  return schema?.title ?? EXPECTED[schema?.type ?? ''] ?? 'something else';
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal number';
  return EXPECTED[typeof value] ?? typeof value;
}

/** `'a', 'b', and 'c'`. */
function list(words: readonly string[]): string {
  const quoted = words.map((word) => `'${word}'`);
  const last = quoted.pop();
  if (quoted.length === 0) return last ?? '';
  return `${quoted.join(', ')}${quoted.length > 1 ? ',' : ''} and ${last}`;
}

/** What a caller sent, short enough to be sent back. */
function clip(value: string): string {
  return value.length <= 64 ? value : `${value.slice(0, 61)}...`;
}

function codePoints(value: string): number {
  let count = 0;
  for (const _ of value) count++;
  return count;
}
