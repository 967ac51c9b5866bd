import { missingParameter, stringTooLong, wrongType } from '../errors/request-errors.js';

/** The reference's limit for a text. In UTF-16 code units, because their number is free. */
const MAX_TEXT = 10 * 1024 * 1024;

export type JsonObject = Readonly<Record<string, unknown>>;

/** Returns the value as an object. @throws ProtocolError 400 if it is not an object. */
export function requireObject(value: unknown, param: string, expectation = 'an object'): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrongType(param, expectation, value);
  return value as JsonObject;
}

/** Returns the value as a string. @throws ProtocolError 400 if it is not a string, or too long. */
export function requireString(value: unknown, param: string): string {
  if (typeof value !== 'string') throw wrongType(param, 'a string', value);
  if (value.length > MAX_TEXT) throw stringTooLong(param, MAX_TEXT, value.length);
  return value;
}

/** Like `requireString`, but null and undefined are allowed. */
export function optionalString(value: unknown, param: string): string | undefined {
  return value == null ? undefined : requireString(value, param);
}

/** Returns a property of the object at `param`. @throws ProtocolError 400 without it. */
export function requireField(object: JsonObject, name: string, param: string): unknown {
  if (object[name] == null) throw missingParameter(`${param}.${name}`);
  return object[name];
}
