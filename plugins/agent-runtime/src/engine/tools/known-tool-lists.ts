import type { ToolDeclaration } from '@plugboard/kernel/contracts';

type ToolList = readonly ToolDeclaration[];

interface KnownList {
  readonly list: ToolList;
  readonly json: string;
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
 * Lists are compared by their JSON, and the known list is a frozen copy: a caller learns nothing of
 * another one, and the model receives what the caller sent.
 */
export class KnownToolLists {
  /** The most recent one first. */
  readonly #known: KnownList[] = [];
  #totalSize = 0;

  /** Returns the known list that is equal to a list. The list itself if it is too large to keep. */
  of(list: ToolList): ToolList {
    const json = JSON.stringify(list);
    if (json.length > MAX_SIZE) return list;
    const index = this.#known.findIndex((known) => known.json === json);
    const known = this.#known[index] ?? this.#add(json);
    if (index > 0) this.#known.splice(index, 1);
    if (index !== 0) this.#known.unshift(known);
    return known.list;
  }

  /** Makes room for a list, and copies it. */
  #add(json: string): KnownList {
    while (this.#known.length >= MAX_LISTS || this.#totalSize + json.length > MAX_TOTAL_SIZE) {
      this.#totalSize -= this.#known.pop()?.json.length ?? 0;
    }
    this.#totalSize += json.length;
    return { json, list: JSON.parse(json, (_, value) => Object.freeze(value)) };
  }
}
