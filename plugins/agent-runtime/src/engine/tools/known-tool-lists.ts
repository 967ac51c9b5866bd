import type { ToolDeclaration } from '@plugboard/kernel/contracts';

type ToolList = readonly ToolDeclaration[];

interface KnownList {
  readonly list: ToolList;
  readonly leaves: readonly unknown[];
  /** Characters of its JSON. */
  readonly size: number;
}

const MAX_LISTS = 32;
/** Characters of JSON. */
const MAX_SIZE = 256 * 1024;
const MAX_TOTAL_SIZE = 2 * 1024 * 1024;

/**
 * The lists of tools that callers sent last. A coding agent sends the same tools with each step. It
 * gets the same list each time, so that what is kept with a list is made once: its translation for
 * a model server, its JSON, its size, its digest.
 *
 * Lists are compared as a whole, in the order of their fields, and the known list is a frozen copy:
 * a caller learns nothing of another one, and the model receives what the caller sent.
 */
export class KnownToolLists {
  /** The most recent one first. */
  readonly #known: KnownList[] = [];
  #totalSize = 0;

  /** Returns the known list that is equal to a list. The list itself if it is too large to keep. */
  of(list: ToolList): ToolList {
    const index = this.#known.findIndex(({ leaves }) => matches(list, leaves, 0) === leaves.length);
    const known = index < 0 ? this.#copy(list) : this.#known[index];
    if (known === undefined) return list;
    if (index > 0) this.#known.splice(index, 1);
    if (index !== 0) this.#known.unshift(known);
    return known.list;
  }

  /** Copies a list, and makes room for it. */
  #copy(list: ToolList): KnownList | undefined {
    const json = JSON.stringify(list);
    const size = json.length;
    if (size > MAX_SIZE) return undefined;
    while (this.#known.length >= MAX_LISTS || this.#totalSize + size > MAX_TOTAL_SIZE) {
      this.#totalSize -= this.#known.pop()?.size ?? 0;
    }
    this.#totalSize += size;
    const copy: ToolList = JSON.parse(json);
    const leaves: unknown[] = [];
    freeze(copy, leaves);
    return { list: copy, leaves, size };
  }
}

const ARRAY = Symbol('array');
const OBJECT = Symbol('object');
const END = Symbol('end');

/** Freezes JSON, and adds its keys and values to the leaves, in their order. */
function freeze(value: unknown, leaves: unknown[]): void {
  if (!isNested(value)) {
    leaves.push(value);
    return;
  }
  leaves.push(Array.isArray(value) ? ARRAY : OBJECT);
  for (const key in value) {
    leaves.push(key);
    freeze(value[key], leaves);
  }
  leaves.push(END);
  Object.freeze(value);
}

/**
 * Compares a value with leaves, and allocates nothing.
 *
 * @param at the index of its first leaf.
 * @returns the index after its last leaf; -1 if it differs.
 */
function matches(value: unknown, leaves: readonly unknown[], at: number): number {
  if (!isNested(value)) return leaves[at] === value ? at + 1 : -1;
  if (leaves[at] !== (Array.isArray(value) ? ARRAY : OBJECT)) return -1;
  let next = at + 1;
  for (const key in value) {
    const inner = value[key];
    if (inner === undefined) continue; // absent in JSON
    if (leaves[next] !== key) return -1;
    next = matches(inner, leaves, next + 1);
    if (next < 0) return -1;
  }
  return leaves[next] === END ? next + 1 : -1;
}

function isNested(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
