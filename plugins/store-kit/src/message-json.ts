import type { Message } from '@plugboard/kernel';
import { Unstorable } from './bad-row.js';

/** Makes the error for a row from a clause whose subject is the row. */
export type RowError = (problem: string) => Error;

/**
 * Encodes each message as JSON. Refuses what could not be read back: here it costs one turn, and
 * when the session is loaded it would cost the session.
 *
 * @throws Unstorable
 */
export function encodeMessages(messages: readonly Message[]): readonly string[] {
  return messages.map((message, i) => {
    const problem = problemOf(message);
    if (problem !== undefined) {
      const what = `message ${i} of the turn ${problem}, so it could not be read back: the turn was not stored`;
      throw new Unstorable('bad_message', what);
    }
    return JSON.stringify(message);
  });
}

/** Encodes messages as one JSON array. @throws Unstorable */
export function encodeMessageList(messages: readonly Message[]): string {
  return `[${encodeMessages(messages).join(',')}]`;
}

/** The size of messages that were encoded, in bytes. */
export function sizeOf(bodies: readonly string[]): number {
  return bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0);
}

/** Decodes a message. Anyone can change the database: its content is validated like a request. */
export function decodeMessage(text: unknown, rowError: RowError): Message {
  const message = parseRow(text, rowError);
  const problem = problemOf(message);
  if (problem !== undefined) throw rowError(problem);
  return message as Message;
}

export function decodeMessageList(text: unknown, rowError: RowError): readonly Message[] {
  const messages = parseRow(text, rowError);
  if (!Array.isArray(messages)) throw rowError('is not a list of messages');
  for (const message of messages) {
    const problem = problemOf(message);
    if (problem !== undefined) throw rowError(`contains a message that ${problem}`);
  }
  return messages;
}

/** Parses the JSON of a row. */
export function parseRow(text: unknown, rowError: RowError): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    throw rowError('is not JSON'); // without the parser's message, which quotes the text
  }
}

type Check = (value: unknown) => boolean;

const isString: Check = (value) => typeof value === 'string';
const isStringOrNull: Check = (value) => value === null || isString(value);
/** Parts and calls are kept as they came; only their outline is validated here. */
const isPlainObject: Check = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !hasPrototypeKey(value);
const isTypedList: Check = (value) => Array.isArray(value) && value.every((item) => isPlainObject(item) && isString(item.type));
/** The data belongs to a model connection and is kept as it came. */
const isExtra: Check = (value) => isPlainObject(value) && isString((value as { connection?: unknown }).connection);
const isContent: Check = (value) => isString(value) || isTypedList(value);

/** The fields of each role besides `role` itself (the kernel's Message). */
const FIELDS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  system: { content: isContent, name: isString },
  user: { content: isContent, name: isString },
  assistant: {
    content: (value) => value === null || isContent(value),
    name: isString,
    refusal: isString,
    tool_calls: isTypedList,
    function_call: isPlainObject,
    audio: isPlainObject,
    extra: isExtra,
  },
  tool: { content: isContent, tool_call_id: isString },
  function: { content: isStringOrNull, name: isString },
};
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  tool: ['content', 'tool_call_id'],
  function: ['content', 'name'],
};
const CONTENT = ['content'];

/** Levels of objects and arrays. `JSON.stringify` fails at some thousands. */
const MAX_NESTING = 1000;

/** Breadth first, because a recursive check would itself fail on deep values. */
function isNestedTooDeeply(value: object): boolean {
  let level: object[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= MAX_NESTING) return true;
    level = level.flatMap((node) => Object.values(node).filter((inner) => typeof inner === 'object' && inner !== null));
  }
  return false;
}

/** Returns why a value is not a message, as a clause, or undefined if it is one. */
function problemOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is not a message';
  if (isNestedTooDeeply(value)) return `is nested more than ${MAX_NESTING} levels deep`;
  const message: Readonly<Record<string, unknown>> = { ...value };
  const { role } = message;
  const fields = typeof role === 'string' && Object.hasOwn(FIELDS, role) ? FIELDS[role] : undefined;
  if (fields === undefined) return 'has an unknown role';
  for (const key of Object.keys(value)) {
    if (key === 'role' || message[key] === undefined) continue;
    const check = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (check === undefined) return `has a field that messages of the role ${role} do not have`;
    if (!check(message[key])) return `has an invalid ${key}`;
  }
  const missing = (REQUIRED[String(role)] ?? CONTENT).find((key) => message[key] === undefined);
  return missing === undefined ? undefined : `has no ${missing}`;
}

/** Whether there is a key `__proto__` at any depth: it would set a prototype in a copy. */
function hasPrototypeKey(value: object): boolean {
  return (
    Object.hasOwn(value, '__proto__') ||
    Object.values(value).some((inner) => typeof inner === 'object' && inner !== null && hasPrototypeKey(inner))
  );
}
