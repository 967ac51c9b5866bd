import type { SchemaMistake } from '@plugboard/kernel/contracts';
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

/** Converts a mistake in a request to the reference's message, `param` and `code`. */
export function schemaErrorToProtocol({ path, keyword, params, schema, data, ...mistake }: SchemaMistake): ProtocolError {
  const at = paramOf(path);
  const limit = Number(params.limit);
  switch (keyword) {
    case 'required':
      return missingParameter(join(at, String(params.missingProperty)));
    case 'type':
      return wrongType(at, expected(schema), data);
    case 'discriminator': {
      const tag = String(params.tag);
      const place = join(at, tag);
      const known = tagsOf(schema, tag);
      return typeof params.tagValue === 'string'
        ? wrongValue(place, params.tagValue, known)
        : wrongType(place, `one of ${quotedList(known)}`, params.tagValue);
    }
    case 'enum':
      return wrongValue(at, String(data), texts(params.allowedValues));
    case 'minimum':
    case 'maximum':
      return outOfRange(at, schema.type === 'integer' ? 'integer' : 'decimal', keyword, limit, Number(data));
    case 'minItems': // always 1
      return emptyArray(at);
    case 'maxItems':
      return arrayTooLong(at, limit, Array.isArray(data) ? data.length : 0);
    case 'maxProperties':
      return tooManyProperties(at, limit, Object.keys(Object(data)).length);
    case 'maxLength':
      return mistake.propertyName === undefined
        ? stringTooLong(at, limit, countCharacters(String(data)))
        : propertyNameTooLong(at, mistake.propertyName, limit);
    case 'pattern':
      return invalidValue(at, `string does not match pattern. Expected a string that matches the pattern '${params.pattern}'`);
    default: // a keyword that no schema uses
      return invalidValue(at, mistake.message);
  }
}

/** A value that the server does not support and must not ignore. */
export function unsupportedValue(param: string, message: string): ProtocolError {
  return invalidRequest(message, { param, code: 'unsupported_value' });
}

/** The values that select one of the shapes of a tagged object. */
function tagsOf({ oneOf }: RequestSchema, tag: string): string[] {
  const shapes = Array.isArray(oneOf) ? (oneOf as readonly TaggedShape[]) : [];
  return shapes.flatMap(({ properties }) => properties[tag]?.const ?? []);
}

type RequestSchema = SchemaMistake['schema'];

interface TaggedShape {
  readonly properties: Readonly<Record<string, { readonly const: string } | undefined>>;
}

function texts(values: unknown): string[] {
  return Array.isArray(values) ? values.map(String) : [];
}

/** `messages[0].content[1].type` */
function paramOf(path: SchemaMistake['path']): string {
  return path.reduce<string>((place, step) => (typeof step === 'number' ? `${place}[${step}]` : join(place, truncate(step))), '');
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

function expected({ title, type }: RequestSchema): string {
  return typeof title === 'string' ? title : (EXPECTED[String(type)] ?? 'something else');
}
