import { ROOT, rootOf } from './branches.js';
import { textOf } from './turn-items.js';

/**
 * @typedef {object} Session a conversation, as the API shows it
 * @property {string} id
 * @property {string} key
 * @property {string} agent
 * @property {number} created_at seconds since 1970
 * @property {number} updated_at
 * @property {number} turns
 * @property {'idle' | 'running' | 'quarantined'} status
 * @property {string | null} title the start of its first message
 * @property {Record<string, string>} metadata
 */

/**
 * Which sessions are listed. Empty texts filter nothing.
 * @typedef {{ search: string, agent: string, status: string }} SessionFilter
 */

const PAGE = 30;

/** The title that somebody gave a session, or its own, or its key. @param {Session} session */
export function sessionTitle({ metadata, title, key }) {
  return metadata.title || title || key;
}

/** The sessions of the caller's project, the latest activity first. */
export class Sessions {
  /** @type {Session[]} */
  list = [];
  hasMore = false;
  /** @type {'off' | 'loading' | 'ready' | 'failed'} */
  status = 'off';
  error = '';
  /** Whether the list failed because of the token. */
  isRefused = false;
  /** @type {SessionFilter} */
  filter = { search: '', agent: '', status: '' };
  #api;
  /** Where the list ends, for the next page. */
  #cursor = '';
  /** Counts the lists that were asked for: an earlier one that arrives later is dropped. */
  #asked = 0;

  /** @param {import('./api.js').Api} api */
  constructor(api) {
    this.#api = api;
  }

  /** Reads the newest ones. */
  async load() {
    if (this.status !== 'ready') this.status = 'loading';
    const asked = ++this.#asked;
    try {
      const { data, has_more, last_id } = await this.#api.get(`v1/conversations?${this.#query}`);
      if (asked !== this.#asked) return;
      const titles = new Map(this.list.map(({ id, title }) => [id, title]));
      // the server knows the title when the first turn has ended
      this.list = data.map((/** @type {Session} */ one) => ({ ...one, title: one.title ?? titles.get(one.id) ?? null }));
      this.hasMore = has_more;
      this.#cursor = last_id ?? '';
      this.status = 'ready';
      this.isRefused = false;
    } catch (error) {
      if (asked !== this.#asked) return;
      this.list = [];
      this.hasMore = false;
      this.status = 'failed';
      const { message, status } = /** @type {import('./api.js').ApiError} */ (error);
      this.error = message;
      this.isRefused = status === 401;
    }
  }

  async more() {
    if (this.#cursor === '') return;
    const asked = this.#asked;
    const { data, has_more, last_id } = await this.#api.get(`v1/conversations?${this.#query}&after=${this.#cursor}`);
    if (asked !== this.#asked) return;
    this.list = [...this.list, ...data];
    this.hasMore = has_more;
    this.#cursor = last_id ?? '';
  }

  /** Whether more was listed than `load` reads. */
  get hasMoreThanOnePage() {
    return this.list.length > PAGE;
  }

  /** Whether the list leaves sessions out. */
  get isFiltered() {
    return Object.values(this.filter).some((text) => text !== '');
  }

  get #query() {
    const filters = Object.entries(this.filter).filter(([, text]) => text.trim() !== '');
    return new URLSearchParams([['limit', String(PAGE)], ...filters]).toString();
  }

  /** @param {string} id @returns {Promise<Session>} */
  get(id) {
    return this.#api.get(`v1/conversations/${encodeURIComponent(id)}`);
  }

  /**
   * The newest items of a session, oldest first.
   * @param {string} id @param {string} [before] an item: those older than it
   * @returns {Promise<{ items: import('./turn.js').ProtocolEvent[], hasMore: boolean }>}
   */
  async items(id, before) {
    const after = before === undefined ? '' : `&after=${encodeURIComponent(before)}`;
    const { data, has_more } = await this.#api.get(
      `v1/conversations/${encodeURIComponent(id)}/items?order=desc&limit=100${after}`,
    );
    return { items: data.reverse(), hasMore: has_more };
  }

  /**
   * The id of the message that began a turn; undefined if the session has none, because the message
   * decided about a call.
   * @param {string} id @param {readonly import('./turn.js').Turn[]} turns it and the later ones
   */
  async messageOf(id, turns) {
    const left = turns.map(({ input }) => input);
    /** @type {string | undefined} */
    let before;
    for (;;) {
      const { items, hasMore } = await this.items(id, before);
      for (const { type, role, content, id: message } of items.toReversed()) {
        const at = type === 'message' && role === 'user' ? left.lastIndexOf(textOf(content)) : -1;
        if (at === 0) return String(message);
        if (at > 0) left.length = at;
      }
      if (!hasMore) return undefined;
      before = items[0]?.id;
    }
  }

  /**
   * @param {{ agent: string, id: string, metadata: Record<string, string> }} fields @returns
   * {Promise<Session>}
   */
  async create(fields) {
    const session = await this.#api.post('v1/conversations', fields);
    this.list = [session, ...this.list];
    return session;
  }

  /** @param {Session} session @param {string} title */
  async rename(session, title) {
    await this.note(session.id, { title });
  }

  /**
   * Changes entries of a session's metadata.
   * @param {string} id @param {Record<string, string>} entries @returns {Promise<Session>}
   */
  async note(id, entries) {
    const { metadata } = await this.get(id); // the other entries may have changed meanwhile, and all are replaced
    const changed = await this.#api.post(`v1/conversations/${encodeURIComponent(id)}`, { metadata: { ...metadata, ...entries } });
    this.list = this.list.map((one) => (one.id === id ? changed : one));
    return changed;
  }

  /** The branches of a session. @param {Session} session */
  async group(session) {
    const query = new URLSearchParams({ limit: '100', metadata: `${ROOT}:${rootOf(session)}` });
    /** @type {Session[]} */
    const found = [];
    for (let after = ''; ; ) {
      const { data, has_more, last_id } = await this.#api.get(`v1/conversations?${query}${after}`);
      found.push(...data);
      if (!has_more) return found;
      after = `&after=${last_id}`;
    }
  }

  /**
   * @param {Session} session @param {string} [after_item] the last item to copy @returns
   * {Promise<Session>}
   */
  async fork({ id }, after_item) {
    const copy = await this.#api.post(`v1/conversations/${encodeURIComponent(id)}/fork`, { after_item });
    this.list = [copy, ...this.list];
    return copy;
  }

  /** @param {Session} session */
  async remove({ id }) {
    await this.#api.delete(`v1/conversations/${encodeURIComponent(id)}`);
    this.list = this.list.filter((one) => one.id !== id);
  }
}

/** The first line of a message, as the title of a session. @param {string} text */
export function titleOf(text) {
  const line = text.trim().split('\n', 1)[0] ?? '';
  return line.length > 80 ? `${line.slice(0, 79).trimEnd()}…` : line;
}

/** A random key for a new session, short enough to be read out. */
export function newKey() {
  const digits = crypto.getRandomValues(new Uint8Array(10));
  return `play-${Array.from(digits, (digit) => '23456789abcdefghjkmnpqrstuvwxyz'[digit % 31]).join('')}`;
}
