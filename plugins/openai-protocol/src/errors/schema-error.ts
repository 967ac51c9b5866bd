import type { AnySchemaObject, DefinedError } from 'ajv';
import { invalidRequest, type ProtocolError } from './errors.js';
import {
  arrayTooLong,
  countCharacters,
  emptyArray,
  invalidValue,
  missingParameter,
  outOfRange,
  propertyNameTooLong,
  quotedList,
  stringTooLong,
  tooManyProperties,
  truncate,
  wrongType,
  wrongValue,
} from './request-errors.js';

/**
 * Converts a schema error to the reference's message, `param` and `code`.
 *
 * @param error from an ajv with `verbose`.
 * @param body the checked value, to distinguish array elements from object properties.
 */
export function schemaErrorToProtocol(error: DefinedError, body: unknown): ProtocolError {
  const at = pathOf(error.instancePath, body);
  switch (error.keyword) {
    case 'required':
      return missingParameter(join(at, error.params.missingProperty));
    case 'type':
      return wrongType(at, expected(error.parentSchema), error.data);
    case 'discriminator': {
      const place = join(at, error.params.tag);
      const known: string[] = error.parentSchema?.oneOf.map((shape: TaggedShape) => shape.properties[error.params.tag]?.const);
      return typeof error.params.tagValue === 'string'
        ? wrongValue(place, error.params.tagValue, known)
        : wrongType(place, `one of ${quotedList(known)}`, error.params.tagValue);
    }
    case 'enum':
      return wrongValue(at, String(error.data), error.params.allowedValues);
    case 'minimum':
    case 'maximum': {
      const kind = error.parentSchema?.type === 'integer' ? 'integer' : 'decimal';
      return outOfRange(at, kind, error.keyword, error.params.limit, error.data as number);
    }
    case 'minItems': // always 1
      return emptyArray(at);
    case 'maxItems':
      return arrayTooLong(at, error.params.limit, (error.data as unknown[]).length);
    case 'maxProperties':
      return tooManyProperties(at, error.params.limit, Object.keys(error.data as object).length);
    case 'maxLength':
      return error.propertyName === undefined
        ? stringTooLong(at, error.params.limit, countCharacters(error.data as string))
        : propertyNameTooLong(at, error.propertyName, error.params.limit);
    case 'pattern':
      return invalidValue(
        at,
        `string does not match pattern. Expected a string that matches the pattern '${error.params.pattern}'`,
      );
    default: // a keyword that no schema uses
      return invalidValue(at, String(error.message));
  }
}

/** A value that the server does not support and must not ignore. */
export function unsupportedValue(param: string, message: string): ProtocolError {
  return invalidRequest(message, { param, code: 'unsupported_value' });
}

interface TaggedShape {
  readonly properties: Readonly<Record<string, { readonly const: string } | undefined>>;
}

/** Converts ajv's `/messages/0/content/1/type` to `messages[0].content[1].type`. */
function pathOf(pointer: string, body: unknown): string {
  let place = '';
  let here = body;
  for (const segment of pointer.split('/').slice(1)) {
    const key = segment.replaceAll('~1', '/').replaceAll('~0', '~');
    place = Array.isArray(here) ? `${place}[${key}]` : join(place, truncate(key));
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
