import { COMPARED, rootOf } from './branches.js';

/** @typedef {import('./conversation.js').Conversation} Conversation */
/** @typedef {import('./playground.js').Playground} Playground */
/** @typedef {import('./sessions.js').Session} Session */

/**
 * The address names the conversations that are shown, so that a reload, a bookmark and the back
 * button find them.
 */
export class Address {
  #app;

  /** @param {Playground} app */
  constructor(app) {
    this.#app = app;
  }

  /** Opens a session, and the one that belongs beside it. @param {Session} session */
  async openSession(session) {
    const { [COMPARED]: first } = session.metadata;
    const other = this.#app.sessions.list.find(({ metadata }) => metadata[COMPARED] === rootOf(session));
    await this.go([first, session.id, other?.id].filter((id) => id !== undefined));
  }

  /** @param {readonly string[]} ids of conversations */
  async go(ids) {
    setIds(ids);
    await this.open();
  }

  /** Names what is shown. */
  write() {
    setIds(this.#app.chats.map(({ id }) => id).filter((id) => id !== ''));
  }

  clear() {
    setIds([]);
  }

  /** Shows the conversations that the address names. */
  async open() {
    const app = this.#app;
    const ids = idsOf(location.hash);
    const shown = app.chats.map(({ id }) => id).filter((id) => id !== '');
    if (ids.join() === shown.join() || !app.server.isOpen) return;
    const [id] = ids;
    if (id === undefined) return app.newChat();
    const chats = ids.slice(0, 2).map((one) => app.runningWith(one) ?? app.successor(app.chat));
    app.show(chats);
    const opened = await Promise.all(chats.map((chat, at) => chat.id !== '' || this.#openStored(chat, ids[at] ?? '')));
    if (app.chats !== chats || opened.every((isOpen) => isOpen)) return;
    const open = chats.filter((_, at) => opened[at]);
    if (open.length === 0) return app.newChat();
    app.show(open);
    this.write();
  }

  /** @param {Conversation} chat @param {string} id */
  async #openStored(chat, id) {
    if (!id.startsWith('conv_') && chat.history.restore(id)) return true;
    return this.#app.server.canKeepSessions && this.#app.try(() => chat.history.open(id));
  }
}

/** @param {string} hash */
function idsOf(hash) {
  try {
    return hash === '' ? [] : hash.slice(1).split(',').map(decodeURIComponent);
  } catch {
    return []; // it was cut when it was copied
  }
}

/** @param {readonly string[]} ids */
function setIds(ids) {
  const hash = ids.length === 0 ? '' : `#${ids.map(encodeURIComponent).join(',')}`;
  if (location.hash !== hash) history.pushState(null, '', location.pathname + location.search + hash);
}
