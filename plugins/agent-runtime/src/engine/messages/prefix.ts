import { hash } from 'node:crypto';
import type { Message } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';

/** The digest of a request: tools, prompt and messages, with their extras. */
export function prefixOf(messages: readonly Message[], tools: readonly ToolDeclaration[]): string {
  let prefix = digestOf(tools);
  for (const message of messages) prefix = prefixWith(prefix, message);
  return prefix;
}

/**
 * The digest of a request with one more message. It is kept with the message: the requests of a
 * conversation begin alike, so each of them digests its last messages only.
 *
 * @param before the digest without the message.
 */
export function prefixWith(before: string, message: Message): string {
  const known = digested(message);
  if (known.before !== before) {
    known.before = before;
    known.prefix = hash('sha256', before + known.digest, 'base64url').slice(0, 22);
  }
  return known.prefix;
}

/** Each message is digested once, and so is the list of an agent's tools. */
export function digestOf(value: object): string {
  return digested(value).digest;
}

interface Digested {
  readonly digest: string;
  /** Of a message: the digest of the last request up to it, without it and with it. */
  before: string;
  prefix: string;
}

const digests = new WeakMap<object, Digested>();

function digested(value: object): Digested {
  let known = digests.get(value);
  if (!known) {
    known = { digest: hash('sha256', JSON.stringify(value, withSortedKeys), 'base64url'), before: '', prefix: '' };
    digests.set(value, known);
  }
  return known;
}

/** A store may return the keys of an object in another order. */
function withSortedKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
