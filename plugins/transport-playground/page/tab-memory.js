import { isRunning } from './turn.js';

/** @typedef {import('./turn.js').Turn} Turn */

/**
 * What the tab remembers of one conversation: what the server does not have.
 * @typedef {object} Memory
 * @property {string} agent
 * @property {boolean} isStateless
 * @property {string} draft
 * @property {Turn[]} turns those that the server does not keep, and the one that runs, oldest first
 */

const PREFIX = 'plugboard.chat.';

/**
 * Characters that all conversations of the tab take together. A browser stores about five million.
 */
const MAX_SIZE = 1_000_000;

/** Characters of a turn beyond which only its message is remembered. */
const MAX_TURN = 100_000;

/**
 * Remembers drafts, and turns that were stopped or failed, across a reload. `sessionStorage` ends
 * with the tab, and no other tab reads it.
 */
export class TabMemory {
  /** The order of the entries, the oldest first. @type {string[]} */
  #order = Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));

  /** @type {(Memory & { id: string })[] | undefined} */
  #unlisted;

  /**
   * @param {string} id of a conversation; empty for one that has not begun @returns {Memory |
   * undefined}
   */
  read(id) {
    return JSON.parse(sessionStorage.getItem(PREFIX + id) ?? 'null') ?? undefined;
  }

  /** @param {string} id @param {Memory} memory */
  write(id, memory) {
    const { draft, turns } = memory;
    this.forget(id);
    if (draft !== '' || turns.length > 0) this.#put(PREFIX + id, JSON.stringify({ ...memory, turns: turns.map(shortened) }));
  }

  /** @param {string} id */
  forget(id) {
    sessionStorage.removeItem(PREFIX + id);
    this.#order = this.#order.filter((key) => key !== PREFIX + id);
    this.#unlisted = undefined;
  }

  /** Forgets everything: the token is forgotten. */
  clear() {
    for (const key of this.#order) sessionStorage.removeItem(key);
    this.#order = [];
    this.#unlisted = undefined;
  }

  /** Conversations that the server does not list, newest first. */
  get unlisted() {
    this.#unlisted ??= this.#order.toReversed().flatMap((key) => {
      const id = key.slice(PREFIX.length);
      const memory = id === '' || id.startsWith('conv_') ? undefined : this.read(id);
      return memory && memory.turns.length > 0 ? [{ ...memory, id }] : [];
    });
    return this.#unlisted;
  }

  /** Stores a text. The oldest ones make room for it. @param {string} key @param {string} text */
  #put(key, text) {
    const sizeOf = (/** @type {string} */ one) => sessionStorage.getItem(one)?.length ?? 0;
    let size = this.#order.reduce((sum, one) => sum + sizeOf(one), text.length);
    while (size > MAX_SIZE && this.#order.length > 0) {
      const [oldest = ''] = this.#order;
      size -= sizeOf(oldest);
      this.forget(oldest.slice(PREFIX.length));
    }
    if (size > MAX_SIZE) return;
    try {
      sessionStorage.setItem(key, text);
      this.#order.push(key);
    } catch {
      // the browser has no room: what is shown stays until the page is left
    }
  }
}

/** The events of a turn that runs can be read again. @param {Turn} turn @returns {Turn} */
function shortened(turn) {
  if (isRunning(turn) && turn.responseId !== '') return { ...turn, items: [], sequence: -1 };
  return JSON.stringify(turn).length <= MAX_TURN
    ? turn
    : { ...turn, items: [], images: [], input: turn.input.slice(0, MAX_TURN) };
}
