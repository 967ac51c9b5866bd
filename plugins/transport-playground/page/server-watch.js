/** @typedef {import('./playground.js').Playground} Playground */

/** Milliseconds between looks at the server. */
const LOOK_INTERVAL = 1500;

/** Looks after which the sessions are read again, which other tabs and clients may have changed. */
const LOOKS = 3;

/**
 * Looks at the server while the page is visible: whether it is there, and what others have done.
 */
export class ServerWatch {
  #app;
  #looks = 0;
  #isLooking = false;

  /** @param {Playground} app */
  constructor(app) {
    this.#app = app;
  }

  start() {
    document.addEventListener('visibilitychange', () => void this.look());
    setInterval(() => void this.look(), LOOK_INTERVAL);
  }

  async look() {
    if (document.hidden || this.#isLooking) return;
    this.#isLooking = true;
    const { server } = this.#app;
    const { health } = server;
    const isBack = await server.readHealth();
    if (isBack) await this.#comeBack();
    else if (server.health === 'ready' && ++this.#looks % LOOKS === 0) await this.#refresh();
    this.#isLooking = false;
    if (health !== server.health) this.#app.changed();
  }

  /** The server answers again. It may be another version. */
  async #comeBack() {
    const { server } = this.#app;
    await this.#app.try(() => server.readSettings());
    if (server.access === 'unreachable') await this.#app.enter();
    if (server.isOpen) await this.#app.reopen();
  }

  /**
   * Shows what other tabs and clients have done. A server that was replaced within an interval is
   * another one, too.
   */
  async #refresh() {
    const app = this.#app;
    const { server } = app;
    const { token } = server.settings;
    await server.readSettings().catch(() => undefined); // the next look says why
    if (token !== server.settings.token) await app.enter();
    if (!server.isOpen || !server.canKeepSessions) return;
    if (!app.sessions.hasMoreThanOnePage) await app.loadSessions();
    if (!app.server.isLive) await this.#readTurns();
  }

  /**
   * Without the live surface, turns that others have added to what is shown show when they have
   * ended.
   */
  async #readTurns() {
    const { chats, sessions } = this.#app;
    for (const chat of chats) {
      const { turns = 0 } = sessions.list.find(({ id }) => id === chat.session?.id) ?? {};
      if (turns > chat.lastNumber) await chat.history.reopen();
    }
  }
}
