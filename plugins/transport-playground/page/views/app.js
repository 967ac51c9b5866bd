import { html, nothing, render } from 'lit/html.js';
import { Playground } from '../playground.js';
import { deleteSession, forkSession, renameSession } from '../session-actions.js';
import { listenForFiles } from './attachments.js';
import { agentSelect, columns } from './columns.js';
import { composer } from './conversation.js';
import { followNewest, inspector } from './inspector.js';
import { copyFrom, icon, iconButton } from './parts.js';
import { listenForShortcuts, shortcutList, showShortcuts } from './shortcuts.js';
import { dialogs, sidebar } from './sidebar.js';
import { trialNote } from './trial-fields.js';

/** @typedef {import('../sessions.js').Session} Session */
/** @typedef {import('../turn.js').Turn} Turn */

/** Below this width the sidebar is a drawer. style.css has the same number. */
const NARROW = matchMedia('(max-width: 56.25em)');

/** The transcript follows new text while its end is at most this many pixels away. */
const NEAR_END = 80;

/** Least time between two texts for screen readers, in milliseconds. */
const ANNOUNCE_INTERVAL = 1500;

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
  isAtEnd = true;
  /** The turn whose message is being changed. @type {Turn | undefined} */
  edited;
  /** The session that the open menu or dialog is about. @type {Session | undefined} */
  target;
  #access = '';
  #announced = '';
  #announcedAt = 0;

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
    this.addEventListener('resize', () => this.requestUpdate()); // of a text: its end may have moved
    this.addEventListener('click', ({ target }) => this.#copyCode(/** @type {Element} */ (target)));
    this.addEventListener('show-events', (event) => this.showEventsOf(/** @type {CustomEvent} */ (event).detail));
    listenForFiles(this);
    listenForShortcuts(this);
    this.ariaBusy = 'true';
    void app.start().then(async () => {
      await this.updateComplete;
      this.ariaBusy = 'false';
      if (app.server.needsToken) this.openDialog('token');
      else this.focusMessage();
    });
  }

  /** Opens the dialog when a token ends that was accepted before. */
  #askForToken() {
    const { access } = this.app.server;
    if (access === 'refused' && this.#access === 'ok') this.openDialog('token');
    this.#access = access;
  }

  /** Renders before the next frame: once, however often it is called until then. */
  requestUpdate() {
    this.#update ??= new Promise((resolve) => {
      requestAnimationFrame(() => {
        this.#update = undefined;
        render(this.#page(), this);
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
          ${this.#header()}
          <div class="transcript" id="transcript" tabindex="-1" @scroll=${() => this.#onScroll()}>
            ${columns(this)}
          </div>
          <div class="dock">
            ${this.isAtEnd || !hasTurns ? nothing : this.#toEnd()}
            ${this.#notice()}
            ${app.chats.map((chat) =>
              trialNote(
                chat,
                () => this.openCard(chat),
                () => this.requestUpdate(),
              ),
            )}
            ${composer(this)}
          </div>
        </div>
      </main>
      ${inspector(this)} ${dialogs(this)} ${shortcutList()}
      <div class="off-screen" aria-live="polite">${this.#announced}</div>`;
  }

  #updated() {
    const { chat, server } = this.app;
    const { agent, turns } = chat;
    const { title } = server.settings;
    document.title = turns.length > 0 ? `${agent} · ${title}` : title;
    if (this.isAtEnd) this.#transcript?.scrollTo({ top: 1e9 });
    else this.#onScroll(); // a card that closes may leave nothing to scroll
    this.#announce();
    this.#fitMessage();
    followNewest(this);
  }

  #header() {
    const { chat, chats, server } = this.app;
    const compare = html`
      <button class="tool-button" title="Compare" aria-label="Compare two agents" @click=${() => this.app.compare()}>
        ${icon('columns')}<span>Compare</span>
      </button>`;
    return html`
      <header class="top">
        ${iconButton('menu', 'Open the menu', () => this.toggleSidebar(true), 'only-narrow')}
${chats.length === 1 ? agentSelect(chat, this, 'Agent') : nothing}
        ${chats.length === 1 && chat.agent !== '' ? iconButton('info', 'About this agent', () => this.openCard(chat)) : nothing}
        <span class="spread"></span>
        ${iconButton('keyboard', 'Keyboard shortcuts', () => showShortcuts(this), 'only-keys')}
        ${chats.length === 1 && server.isOpen ? compare : nothing} ${this.#panelButton('code', 'Code')} ${this.#panelButton('events', 'Events')}
      </header>`;
  }

  /** @param {'code' | 'events'} panel @param {string} label */
  #panelButton(panel, label) {
    const isOn = this.panel === panel;
    return html`
      <button class="tool-button" title=${label} aria-label=${label} aria-pressed=${isOn}
        @click=${() => this.showPanel(isOn ? '' : panel)}>
        ${icon(panel === 'code' ? 'code' : 'pulse')}<span>${label}</span>
      </button>`;
  }

  /**
   * Adds earlier turns above what the reader sees, which stays where it is. @param
   * {import('../conversation.js').Conversation} chat
   */
  async loadOlder(chat) {
    const area = this.#transcript;
    const below = area ? area.scrollHeight - area.scrollTop : 0;
    this.isAtEnd = false;
    await chat.history.loadOlder();
    await this.updateComplete;
    area?.scrollTo({ top: area.scrollHeight - below });
  }

  #toEnd() {
    const onClick = () => {
      this.isAtEnd = true;
      this.requestUpdate();
    };
    return html`<button class="to-end" @click=${onClick}>${icon('down')} Newest</button>`;
  }

  /** What went wrong outside a turn, or what the next message does. */
  #notice() {
    const { app } = this;
    const { chat, chats } = app;
    const text = app.notice || (chats.length === 1 ? chat.notice : '');
    const { newVersion } = app.server;
    if (text === '' && newVersion !== '') return replaced(newVersion);
    if (text === '') return chats.some(({ changesAgent }) => changesAgent) ? this.#changeOfAgent() : nothing;
    return html`
      <div class="notice" role="alert">
        ${icon('warning')}<span>${text}</span>${iconButton('close', 'Dismiss', () => app.dismissNotice())}
      </div>`;
  }

  #changeOfAgent() {
    const { agent = '' } = this.app.chats.find(({ changesAgent }) => changesAgent) ?? {};
    return html`
      <p class="notice quiet" role="status">
        Your next message begins a new session with ${agent}. This conversation stays in the list.
      </p>`;
  }

  get draft() {
    return this.app.chat.draft;
  }

  submit() {
    const { chat } = this.app;
    const { images } = chat;
    const text = this.draft.trim();
    if ((text === '' && images.length === 0) || this.app.isRunning) return;
    this.setDraft('');
    chat.setImages([]);
    this.say(text, images);
  }

  /** @param {string} text @param {readonly string[]} [images] */
  say(text, images) {
    this.isAtEnd = true;
    void this.app.send(text, images);
    this.focusMessage();
  }

  /** @param {string} draft */
  setDraft(draft) {
    this.app.chat.setDraft(draft);
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
    this.isAtEnd = true;
    this.toggleSidebar(false);
    await this.app.address.openSession(session);
    this.focusMessage();
  }

  /** @param {string} id of a conversation that only this tab has */
  async openTabChat(id) {
    this.isAtEnd = true;
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
    const { openCard } = await import('./agent-card.js');
    openCard(this, chat);
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

  /** @param {Event} event @param {Session} session */
  openMenu(event, session) {
    this.target = session;
    this.openPopover(event, '#session-menu');
    this.requestUpdate();
  }

  /**
   * Opens a popover below or above the button that was clicked.
   * @param {Event} event @param {string} selector
   */
  openPopover(event, selector) {
    const button = /** @type {HTMLElement} */ (event.currentTarget);
    const popover = this.find(selector);
    if (!popover?.togglePopover({ source: button })) return;
    const { left, right, bottom, top } = button.getBoundingClientRect();
    const { offsetWidth, offsetHeight } = popover;
    const x = left + offsetWidth > innerWidth - 8 ? right - offsetWidth : left;
    const y = bottom + offsetHeight + 8 > innerHeight ? top - offsetHeight - 6 : bottom + 6;
    popover.style.left = `${Math.max(8, x)}px`;
    popover.style.top = `${Math.max(8, y)}px`;
    /** @type {HTMLElement | null} */ (popover.querySelector('button, input:checked'))?.focus();
  }

  /** @param {'token' | 'rename' | 'delete'} name */
  openDialog(name) {
    this.find('#session-menu')?.hidePopover();
    this.toggleSidebar(false);
    this.requestUpdate();
    void this.updateComplete.then(() => {
      const dialog = /** @type {HTMLDialogElement} */ (this.find(`#${name}-dialog`));
      if (!dialog.open) dialog.showModal();
      dialog.querySelector('input')?.select();
    });
  }

  closeDialogs() {
    for (const dialog of this.querySelectorAll('dialog')) dialog.close();
  }

  /** @param {string} token */
  async enterToken(token) {
    await this.app.setToken(token);
    const field = /** @type {HTMLInputElement} */ (this.find('#token'));
    if (this.app.server.access === 'refused') return field.focus(); // what was typed can be mended
    field.value = '';
    if (token !== '') this.closeDialogs();
    this.focusMessage();
  }

  /** @param {string} title */
  renameSession(title) {
    this.closeDialogs();
    if (this.target && title !== '') void renameSession(this.app, this.target, title);
  }

  deleteSession() {
    this.closeDialogs();
    if (this.target) void deleteSession(this.app, this.target);
    this.focusMessage();
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

  get #transcript() {
    return this.find('#transcript');
  }

  #onScroll() {
    const area = this.#transcript;
    if (!area) return;
    const isAtEnd = area.scrollHeight - area.scrollTop - area.clientHeight < NEAR_END;
    if (isAtEnd === this.isAtEnd) return;
    this.isAtEnd = isAtEnd;
    this.requestUpdate();
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

  /** Shows the draft, in a field as high as the text. */
  #fitMessage() {
    const field = /** @type {HTMLTextAreaElement} */ (this.find('#message'));
    if (field.value !== this.draft) field.value = this.draft;
    field.style.height = 'auto';
    field.style.height = `${field.scrollHeight}px`; // the style sheet has a limit
  }

  /** Passes the newest announcement to screen readers, but not each one of a quick series. */
  #announce() {
    const { announcement } = this.app;
    if (announcement === this.#announced) return;
    const wait = this.#announcedAt + ANNOUNCE_INTERVAL - performance.now();
    setTimeout(() => this.requestUpdate(), Math.max(0, wait));
    if (wait > 0) return;
    this.#announcedAt = performance.now();
    this.#announced = announcement;
  }

  /** The copy buttons of code blocks are made outside the templates. @param {Element} target */
  #copyCode(target) {
    const button = /** @type {HTMLElement | null} */ (target.closest('.copy-code'));
    const code = button?.closest('.code-frame')?.querySelector('code');
    if (button && code) void copyFrom(button, code.textContent ?? '');
  }
}

/** Says that the server is newer than the page. @param {string} version */
function replaced(version) {
  return html`
    <div class="notice quiet" role="status">
      <span>The server was replaced by version ${version}. Reload the page to use it: what you typed stays.</span>
      <button class="plain" @click=${() => location.reload()}>Reload</button>
    </div>`;
}

customElements.define('playground-app', PlaygroundApp);
