import { createHash } from 'node:crypto';
import type { Message } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';

/** The digest of a request up to some message: tools, prompt and messages, with their extras. */
export class PrefixDigest {
  readonly #hash = createHash('sha256');

  constructor(tools: readonly ToolDeclaration[]) {
    this.#hash.update(digestOfTools(tools));
  }

  add(message: Message): void {
    this.#hash.update(digestOf(message, message));
  }

  get value(): string {
    return this.#hash.copy().digest('base64url').slice(0, 22);
  }
}

/** The digest of a whole request. */
export function prefixOf(messages: readonly Message[], tools: readonly ToolDeclaration[]): string {
  const digest = new PrefixDigest(tools);
  for (const message of messages) digest.add(message);
  return digest.value;
}

const digests = new WeakMap<object, string>();

/** The order of tools means nothing. */
function digestOfTools(tools: readonly ToolDeclaration[]): string {
  return digestOf(tools, () => tools.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
}

/** Each message is digested once, and so is the list of an agent's tools. */
function digestOf(key: object, value: object | (() => object)): string {
  let digest = digests.get(key);
  if (digest === undefined) {
    const json = JSON.stringify(typeof value === 'function' ? value() : value, withSortedKeys);
    digest = createHash('sha256').update(json).digest('base64url');
    digests.set(key, digest);
  }
  return digest;
}

/** A store may return the keys of an object in another order. */
function withSortedKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
