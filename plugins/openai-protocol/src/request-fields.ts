import { missingParameter, stringTooLong, wrongType } from './request-errors.js';

/** The reference's own figure for a text, in UTF-16 code units, which cost no count. */
const MAX_TEXT = 10 * 1024 * 1024;

export type JsonObject = Readonly<Record<string, unknown>>;

/** @throws ProtocolError 400 where the value is no object. */
export function requireObject(value: unknown, param: string, expectation = 'an object'): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrongType(param, expectation, value);
  return value as JsonObject;
}

/** @throws ProtocolError 400 where the value is no string, or longer than any text may be. */
export function requireString(value: unknown, param: string): string {
  if (typeof value !== 'string') throw wrongType(param, 'a string', value);
  if (value.length > MAX_TEXT) throw stringTooLong(param, MAX_TEXT, value.length);
  return value;
}

/** The same, where it may be absent, which null is too. */
export function optionalString(value: unknown, param: string): string | undefined {
  return value == null ? undefined : requireString(value, param);
}

/** What an object has under a name. @param param where the object stands. @throws ProtocolError 400 where there is nothing. */
export function requireField(object: JsonObject, name: string, param: string): unknown {
  if (object[name] == null) throw missingParameter(`${param}.${name}`);
  return object[name];
}
