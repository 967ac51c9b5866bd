import { invalidField } from '../errors/messages-error.js';

export type Fields = Readonly<Record<string, unknown>>;

/** Longer texts of a request are cut in messages. */
const MAX_QUOTE = 64;

/** Readers of fields. Each throws `MessagesError` 400 with the path of the wrong field. */

/** The value of a field that must be there; null counts as absent. */
export function required(fields: Fields, name: string, path: string): unknown {
  const value = fields[name];
  if (value == null) throw invalidField(join(path, name), 'Field required');
  return value;
}

export function asObject(value: unknown, path: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidField(path, 'Input should be an object');
  return value as Fields;
}

export function asList(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) throw invalidField(path, 'Input should be a valid list');
  return value;
}

export function asText(value: unknown, path: string): string {
  if (typeof value !== 'string') throw invalidField(path, 'Input should be a valid string');
  return value;
}

export function asFlag(value: unknown, path: string): boolean {
  if (typeof value !== 'boolean') throw invalidField(path, 'Input should be a valid boolean');
  return value;
}

export function asNumber(value: unknown, path: string, minimum: number, maximum: number): number {
  if (typeof value !== 'number') throw invalidField(path, 'Input should be a valid number');
  return within(value, path, minimum, maximum);
}

export function asInteger(value: unknown, path: string, minimum: number, maximum: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) throw invalidField(path, 'Input should be a valid integer');
  return within(value, path, minimum, maximum);
}

export function asWord<W extends string>(value: unknown, path: string, words: readonly W[]): W {
  const word = words.find((one) => one === value);
  if (word !== undefined) return word;
  throw invalidField(path, `Input should be ${words.map((one) => `'${one}'`).join(', ')}`);
}

/** Cuts a text of the request for a message. */
export function quote(text: string): string {
  return text.length <= MAX_QUOTE ? text.toWellFormed() : `${text.slice(0, MAX_QUOTE - 3).toWellFormed()}...`;
}

export function join(path: string, name: string | number): string {
  return path === '' ? String(name) : `${path}.${name}`;
}

function within(value: number, path: string, minimum: number, maximum: number): number {
  if (value < minimum) throw invalidField(path, `Input should be greater than or equal to ${minimum}`);
  if (value > maximum) throw invalidField(path, `Input should be less than or equal to ${maximum}`);
  return value;
}
