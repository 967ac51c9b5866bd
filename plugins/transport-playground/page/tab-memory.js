import { tabStorage } from './tab-storage.js';
import { isRunning } from './turn.js';

/** @typedef {import('./turn.js').Turn} Turn */

/**
 * What the tab remembers of one conversation: what the server does not have.
 * @typedef {object} Memory
 * @property {string} agent
 * @property {boolean} isStateless
 * @property {string} draft
 * @property {readonly string[]} images of the draft, as data URLs
 * @property {Turn[]} turns those that the server does not keep, and the one that runs, oldest first
 */

const PREFIX = 'plugboard.chat.';

/**
 * Characters that all conversations of the tab take together, with their images. Browsers store
 * between 2.5 and 5 million.
 */
const MAX_SIZE = 2_000_000;

/** Characters of a turn, with its images, beyond which only its message is remembered. */
const MAX_TURN = 1_000_000;

/** Characters of that message. */
const MAX_INPUT = 100_000;

/**
 * Remembers drafts, and turns that were stopped or failed, across a reload. `sessionStorage` ends
 * with the tab, and no other tab reads it.
 */
export class TabMemory {
  /** The order of the entries, the oldest first. @type {string[]} */
  #order = tabStorage.keys().filter((key) => key.startsWith(PREFIX));

  /** @type {(Memory & { id: string })[] | undefined} */
  #unlisted;
  #isEnded = false;

  /**
   * @param {string} id of a conversation; empty for one that has not begun @returns {Memory |
   * undefined}
   */
  read(id) {
    const text = tabStorage.get(PREFIX + id);
    return text === undefined ? undefined : { images: [], ...JSON.parse(text) };
  }

  /**
   * @param {string} id @param {Memory} memory @returns {boolean} whether there was room for all of
   * it. Without room for the images of the draft, the rest is stored.
   */
  write(id, memory) {
    const { draft, images, turns } = memory;
    if (this.#isEnded) return true;
    this.forget(id);
    if (draft === '' && images.length === 0 && turns.length === 0) return true;
    const short = { ...memory, turns: turns.map(shortened) };
    if (this.#put(PREFIX + id, JSON.stringify(short))) return true;
    if (images.length > 0) this.#put(PREFIX + id, JSON.stringify({ ...short, images: [] }));
    return false;
  }

  /** @param {string} id */
  forget(id) {
    tabStorage.delete(PREFIX + id);
    this.#order = this.#order.filter((key) => key !== PREFIX + id);
    this.#unlisted = undefined;
  }

  /** Forgets everything: the token is another one. A turn that ends later is not remembered. */
  end() {
    for (const key of this.#order) tabStorage.delete(key);
    this.#isEnded = true;
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

  /**
   * Stores a text. The oldest ones make room for it. @param {string} key @param {string} text
   * @returns {boolean} whether there was room
   */
  #put(key, text) {
    const sizeOf = (/** @type {string} */ one) => tabStorage.get(one)?.length ?? 0;
    if (text.length > MAX_SIZE) return false;
    let size = this.#order.reduce((sum, one) => sum + sizeOf(one), text.length);
    while (size > MAX_SIZE && this.#order.length > 0) {
      const [oldest = ''] = this.#order;
      size -= sizeOf(oldest);
      this.forget(oldest.slice(PREFIX.length));
    }
    this.#order = [...this.#order.filter((one) => one !== key), key];
    return tabStorage.set(key, text);
  }
}

/** The events of a turn that runs can be read again. @param {Turn} turn @returns {Turn} */
function shortened(turn) {
  if (isRunning(turn) && turn.responseId !== '') return { ...turn, items: [], sequence: -1 };
  return JSON.stringify(turn).length <= MAX_TURN
    ? turn
    : { ...turn, items: [], images: [], input: turn.input.slice(0, MAX_INPUT) };
}
