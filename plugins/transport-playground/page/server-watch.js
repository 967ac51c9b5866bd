/** @typedef {import('./playground.js').Playground} Playground */

/** Milliseconds between checks of the server. */
const CHECK_INTERVAL = 1500;

/**
 * Checks after which the sessions are read again, which other tabs and clients may have changed.
 */
const CHECKS_PER_REFRESH = 3;

/**
 * Checks while the page is visible whether the server is there, and what others have done.
 */
export class ServerWatch {
  #app;
  #checks = 0;
  #isChecking = false;

  /** @param {Playground} app */
  constructor(app) {
    this.#app = app;
  }

  start() {
    document.addEventListener('visibilitychange', () => void this.check());
    setInterval(() => void this.check(), CHECK_INTERVAL);
  }

  async check() {
    if (document.hidden || this.#isChecking) return;
    this.#isChecking = true;
    const { server } = this.#app;
    const { health } = server;
    const isBack = await server.readHealth();
    if (isBack) await this.#comeBack();
    else if (server.health === 'ready' && ++this.#checks % CHECKS_PER_REFRESH === 0) await this.#refresh();
    this.#isChecking = false;
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
    await server.readSettings().catch(() => undefined); // the next check says why
    if (token !== server.settings.token) await app.enter();
    if (!server.isOpen) return;
    await app.readAgents().catch(() => undefined);
    if (!server.canKeepSessions) return;
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
