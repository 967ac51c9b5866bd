import { createHash } from 'node:crypto';
import type { Message } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';

/** The digest of a request up to some message: tools, prompt and messages, with their extras. */
export class PrefixDigest {
  readonly #hash = createHash('sha256');

  constructor(tools: readonly ToolDeclaration[]) {
    this.#hash.update(digestOf(tools));
  }

  add(message: Message): void {
    this.#hash.update(digestOf(message));
  }

  get value(): string {
    return this.#hash.copy().digest('base64url').slice(0, 22);
  }
}

export function prefixOf(messages: readonly Message[], tools: readonly ToolDeclaration[]): string {
  const digest = new PrefixDigest(tools);
  for (const message of messages) digest.add(message);
  return digest.value;
}

const digests = new WeakMap<object, string>();

/** Each message is digested once, and so is the list of an agent's tools. */
export function digestOf(value: object): string {
  let digest = digests.get(value);
  if (digest === undefined) {
    digest = createHash('sha256').update(JSON.stringify(value, withSortedKeys)).digest('base64url');
    digests.set(value, digest);
  }
  return digest;
}

/** A store may return the keys of an object in another order. */
function withSortedKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
