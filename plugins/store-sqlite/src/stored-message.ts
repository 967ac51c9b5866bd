import type { Message } from '@plugboard/kernel';
import { badMessage } from './errors.js';

/**
 * Each message as the JSON text that is kept. What could not be read back is refused here, where only the turn is lost, and not when the
 * session is loaded, where all of it would be.
 *
 * @throws StoreError
 */
export function encoded(messages: readonly Message[]): readonly string[] {
  return messages.map((message, i) => {
    const fault = faultOf(message);
    if (fault !== undefined) throw badMessage(i, fault);
    return JSON.stringify(message);
  });
}

/** The same for messages that are kept together in one text. */
export function encodedList(messages: readonly Message[]): string {
  return `[${encoded(messages).join(',')}]`;
}

/**
 * The message that a text holds. A file can have been changed by anyone: what comes out of it is checked as what comes over the wire is.
 * @param refuse makes the error of what is wrong, half a sentence whose subject is the row.
 */
export function decoded(text: unknown, refuse: (fault: string) => Error): Message {
  const message = parsed(text, refuse);
  const fault = faultOf(message);
  if (fault !== undefined) throw refuse(fault);
  return message as Message;
}

export function decodedList(text: unknown, refuse: (fault: string) => Error): readonly Message[] {
  const messages = parsed(text, refuse);
  if (!Array.isArray(messages)) throw refuse('is no list of messages');
  for (const message of messages) {
    const fault = faultOf(message);
    if (fault !== undefined) throw refuse(`holds a message that ${fault}`);
  }
  return messages;
}

/** What JSON a text of the file holds. */
export function parsed(text: unknown, refuse: (fault: string) => Error): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    throw refuse('is not JSON'); // without the parser's own message, which quotes the text
  }
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isTextOrNull: Check = (value) => value === null || isText(value);
/** Parts and calls are kept as they came, with whatever the protocol has them hold; only their outline is known here. */
const isPlain: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && !holdsPrototype(value);
const isTypedList: Check = (value) => Array.isArray(value) && value.every((item) => isPlain(item) && isText(item.type));
const isContent: Check = (value) => isText(value) || isTypedList(value);

/** The fields of each role besides `role` itself (the kernel's Message). */
const FIELDS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  system: { content: isContent, name: isText },
  user: { content: isContent, name: isText },
  assistant: {
    content: (value) => value === null || isContent(value),
    name: isText,
    refusal: isText,
    tool_calls: isTypedList,
    function_call: isPlain,
    audio: isPlain,
  },
  tool: { content: isContent, tool_call_id: isText },
  function: { content: isTextOrNull, name: isText },
};
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  tool: ['content', 'tool_call_id'],
  function: ['content', 'name'],
};
const CONTENT = ['content'];

/** What keeps a value from being a message, as half a sentence, or undefined. */
function faultOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is no message';
  const message: Readonly<Record<string, unknown>> = { ...value };
  const { role } = message;
  const fields = typeof role === 'string' && Object.hasOwn(FIELDS, role) ? FIELDS[role] : undefined;
  if (fields === undefined) return 'has no role that is known';
  for (const key of Object.keys(value)) {
    if (key === 'role' || message[key] === undefined) continue;
    const check = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (check === undefined) return `has a field that no message of the role ${role} has`;
    if (!check(message[key])) return `has no valid ${key}`;
  }
  const missing = (REQUIRED[String(role)] ?? CONTENT).find((key) => message[key] === undefined);
  return missing === undefined ? undefined : `has no ${missing}`;
}

/** Whether a `__proto__` stands anywhere in it, which becomes something else as soon as anyone copies it. */
function holdsPrototype(value: object): boolean {
  return (
    Object.hasOwn(value, '__proto__') ||
    Object.values(value).some((inner) => typeof inner === 'object' && inner !== null && holdsPrototype(inner))
  );
}
