import { hash } from 'node:crypto';
import type { Message } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';

/** The digest of a request: tools, prompt and messages, with their extras. */
export function prefixOf(messages: readonly Message[], tools: readonly ToolDeclaration[]): string {
  let prefix = digestOf(tools);
  for (const message of messages) prefix = prefixWith(prefix, message);
  return prefix;
}

const prefixes = new WeakMap<Message, { readonly before: string; readonly prefix: string }>();

/**
 * The digest of a request with one more message. It is kept with the message: the requests of a
 * conversation begin alike, so each of them digests its last messages only.
 *
 * @param before the digest without the message.
 */
export function prefixWith(before: string, message: Message): string {
  const known = prefixes.get(message);
  if (known?.before === before) return known.prefix;
  const prefix = hash('sha256', before + digestOf(message), 'base64url').slice(0, 22);
  prefixes.set(message, { before, prefix });
  return prefix;
}

const digests = new WeakMap<object, string>();

/** Each message is digested once, and so is the list of an agent's tools. */
export function digestOf(value: object): string {
  let digest = digests.get(value);
  if (digest === undefined) {
    digest = hash('sha256', JSON.stringify(value, withSortedKeys), 'base64url');
    digests.set(value, digest);
  }
  return digest;
}

/** A store may return the keys of an object in another order. */
function withSortedKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
