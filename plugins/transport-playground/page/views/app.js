import { html, nothing, render } from 'lit/html.js';
import { Playground } from '../playground.js';
import { forkSession } from '../session-actions.js';
import { Announcer } from './announcer.js';
import { listenForFiles } from './attachments.js';
import { columns } from './columns.js';
import { composer, fitMessage } from './composer.js';
import { dialogs, openDialog } from './dialogs.js';
import { keepFocus } from './focus.js';
import { header } from './header.js';
import { followNewest, inspector } from './inspector.js';
import { notice, waitingNote } from './notice.js';
import { copyFrom } from './parts.js';
import { followEnd, goToEnd, isAway, noteEnd, toEnd } from './scrolling.js';
import { listenForShortcuts, shortcutList } from './shortcuts.js';
import { sidebar } from './sidebar.js';
import { trialNote } from './trial-fields.js';

/** @typedef {import('../sessions.js').Session} Session */
/** @typedef {import('../turn.js').Turn} Turn */

/** Below this width the sidebar is a drawer. style.css has the same number. */
const NARROW = matchMedia('(max-width: 56.25em)');

/**
 * The page. It renders into the document, without a shadow root, so that one style sheet covers
 * everything.
 */
export class PlaygroundApp extends HTMLElement {
  app = new Playground();
  /** @type {'' | 'events' | 'code'} */
  panel = '';
  /**
   * The request that is shown as code.
   * @type {{ language: import('../snippets.js').Language, surface:
   *   import('../snippets.js').Surface, stream: boolean }}
   */
  code = { language: 'curl', surface: 'chat', stream: false };
  showsDeltas = false;
  /** The turn whose events are shown; undefined for all. @type {Turn | undefined} */
  eventsOf;
  isSidebarOpen = false;
  isDrawer = NARROW.matches;
  /** The turn whose message is being changed. @type {Turn | undefined} */
  edited;
  /** The session that the open menu or dialog is about. @type {Session | undefined} */
  target;
  #access = '';
  #announcer = new Announcer();
  /** The conversations as they are rendered. @type {readonly unknown[]} */
  #rendered = [];
  /** Resolves when the pending changes are rendered. @type {Promise<void> | undefined} */
  #update;

  connectedCallback() {
    const { app } = this;
    app.addEventListener('change', () => this.requestUpdate());
    app.addEventListener('change', () => this.#askForToken());
    NARROW.addEventListener('change', ({ matches }) => {
      this.isDrawer = matches;
      this.requestUpdate();
    });
    addEventListener('resize', () => this.requestUpdate()); // of the window, or of a text: its end may have moved
    for (const type of ['click', 'keydown']) this.addEventListener(type, (event) => this.#dropLate(event), true);
    this.addEventListener('click', ({ target }) => this.#copyCode(/** @type {Element} */ (target)));
    this.addEventListener('show-events', (event) => this.showEventsOf(/** @type {CustomEvent} */ (event).detail));
    this.addEventListener('beforetoggle', focusFirst, true); // it does not bubble
    this.addEventListener('refused', (event) => this.notify(/** @type {CustomEvent} */ (event).detail));
    listenForFiles(this);
    listenForShortcuts(this);
    this.ariaBusy = 'true';
    void app.start().then(async () => {
      await this.updateComplete;
      this.ariaBusy = 'false';
      if (app.server.needsToken) openDialog(this, 'token');
      else this.focusMessage();
    });
  }

  /** Opens the dialog when a token ends, or when the server begins to need one. */
  #askForToken() {
    const { access, needsToken } = this.app.server;
    if (access === 'checking') return;
    if (needsToken && (this.#access === 'ok' || this.#access === 'open')) openDialog(this, 'token');
    this.#access = access;
  }

  /** Renders before the next frame: once, however often it is called until then. */
  requestUpdate() {
    this.#update ??= new Promise((resolve) => {
      requestAnimationFrame(() => {
        this.#update = undefined;
        keepFocus(() => render(this.#page(), this));
        this.#updated();
        resolve();
      });
    });
  }

  get updateComplete() {
    return this.#update ?? Promise.resolve();
  }

  #page() {
    const { app } = this;
    const isCovered = this.isDrawer && this.isSidebarOpen;
    const hasTurns = app.chats.some(({ turns }) => turns.length > 0);
    return html`
      <a class="skip" href="#message" @click=${(/** @type {Event} */ event) => this.#skip(event)}>Skip to the message</a>
      ${sidebar(this)}
      ${isCovered ? html`<div class="backdrop" @click=${() => this.toggleSidebar(false)}></div>` : nothing}
      <main>
        <h1 class="off-screen">${app.server.settings.title}</h1>
        <div class="main" ?inert=${isCovered}>
          ${header(this)}
          <div class=${app.chats.length === 1 ? 'transcript pane' : 'transcript'} id="transcript" tabindex="-1"
            @scroll=${(/** @type {Event} */ event) => noteEnd(this, event)}>
            ${columns(this)}
          </div>
          <div class="dock">
            ${hasTurns && isAway(this) ? toEnd(this) : nothing}
            ${notice(this)}
            ${app.chats.map((chat) => trialNote(chat, this))}
            ${waitingNote(this)}
            ${composer(this)}
          </div>
        </div>
      </main>
      ${inspector(this)} ${dialogs(this)} ${shortcutList()}
      <div class="off-screen" aria-live="polite">${this.#announcer.text}</div>`;
  }

  #updated() {
    this.#rendered = this.app.chats;
    const { chat, server } = this.app;
    const { agent, turns } = chat;
    const { title } = server.settings;
    document.title = turns.length > 0 ? `${agent} · ${title}` : title;
    followEnd(this);
    this.#announcer.announce(this.app.announcement, () => this.requestUpdate());
    fitMessage(this);
    followNewest(this);
  }

  /**
   * Drops what was meant for a turn of a conversation that was left, but is not yet gone from the
   * page. @param {Event} event
   */
  #dropLate(event) {
    const isLate = this.#rendered !== this.app.chats && /** @type {Element} */ (event.target).closest('.turn');
    if (!isLate) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} text @param {readonly string[]} [images] */
  say(text, images) {
    goToEnd(this);
    void this.app.send(text, images);
    this.focusMessage();
  }

  /** @param {Turn | undefined} turn whose message is changed; undefined to leave it */
  editTurn(turn) {
    this.edited = turn;
    this.requestUpdate();
    void this.updateComplete.then(() => this.find(turn ? '#edited' : '#message')?.focus());
  }

  newChat() {
    this.app.newChat();
    this.toggleSidebar(false);
    this.focusMessage();
  }

  /** @param {Session} session */
  async openSession(session) {
    goToEnd(this);
    this.toggleSidebar(false);
    await this.app.address.openSession(session);
    this.focusMessage();
  }

  /** @param {string} id of a conversation that only this tab has */
  async openTabChat(id) {
    goToEnd(this);
    this.toggleSidebar(false);
    await this.app.address.go([id]);
    this.focusMessage();
  }

  /** @param {boolean} isOpen */
  toggleSidebar(isOpen) {
    if (this.isSidebarOpen === isOpen) return;
    this.isSidebarOpen = isOpen;
    this.requestUpdate();
    const button = isOpen ? '#sidebar .only-narrow' : '.top .only-narrow';
    void this.updateComplete.then(() => this.find(button)?.focus());
  }

  /** @param {import('../conversation.js').Conversation} chat */
  async openCard(chat) {
    const part = await this.loaded(import('./agent-card.js'));
    part?.openCard(this, chat);
  }

  /**
   * A part of the page that is loaded late. If it cannot be, says why. @template T @param
   * {Promise<T>} loading
   */
  loaded(loading) {
    return loading.catch(() => this.notify('This part of the page could not be loaded. Reload the page: your draft stays.'));
  }

  /** Shows what went wrong. @param {string} notice */
  notify(notice) {
    this.app.notice = notice;
    this.requestUpdate();
  }

  /** @param {PlaygroundApp['panel']} panel */
  showPanel(panel) {
    this.panel = panel;
    this.requestUpdate();
  }

  /** @param {Partial<PlaygroundApp['code']>} change */
  showCode(change) {
    this.code = { ...this.code, ...change };
    this.requestUpdate();
  }

  /** @param {Turn | undefined} turn */
  showEventsOf(turn) {
    this.eventsOf = turn;
    this.showPanel('events');
  }

  toggleDeltas() {
    this.showsDeltas = !this.showsDeltas;
    this.requestUpdate();
  }

  /** The menu is about to open for a session. @param {Session} session */
  aimMenu(session) {
    if (this.target !== session) this.find('#session-menu')?.hidePopover(); // of another one: the click would close it
    this.target = session;
    this.requestUpdate();
  }

  forkSession() {
    this.find('#session-menu')?.hidePopover();
    this.toggleSidebar(false);
    if (this.target) void forkSession(this.app, this.target);
  }

  /** Not on touch screens, where the keyboard would cover half of the page. */
  focusMessage() {
    void this.updateComplete.then(() => {
      if (matchMedia('(hover: hover)').matches) this.find('#message')?.focus();
    });
  }

  /** @param {string} selector @returns {HTMLElement | null} */
  find(selector) {
    return this.querySelector(selector);
  }

  /** @param {string} agent @param {import('../conversation.js').Conversation} chat */
  pickAgent(agent, chat) {
    this.app.selectAgent(agent, chat);
    this.focusMessage();
  }

  /** @param {Event} event */
  #skip(event) {
    event.preventDefault();
    this.find('#message')?.focus();
  }

  /** The copy buttons of code blocks are made outside the templates. @param {Element} target */
  #copyCode(target) {
    const button = /** @type {HTMLElement | null} */ (target.closest('.copy-code'));
    const code = button?.closest('.code-frame')?.querySelector('code');
    if (button && code) void copyFrom(button, code.textContent ?? '');
  }
}

/**
 * A popover that opens takes the focus: its first control, or the choice that is made. @param
 * {ToggleEvent} event
 */
function focusFirst({ target, newState }) {
  const popover = /** @type {HTMLElement} */ (target);
  if (newState !== 'open' || !popover.popover) return;
  for (const one of popover.querySelectorAll('[autofocus]')) one.removeAttribute('autofocus');
  popover.querySelector('button, select, input:checked')?.setAttribute('autofocus', '');
}

customElements.define('playground-app', PlaygroundApp);
