import { html, nothing, render } from 'lit/html.js';
import { Playground } from '../playground.js';
import { composer, turnView } from './conversation.js';
import { inspector } from './inspector.js';
import { copyFrom, icon } from './parts.js';
import { dialogs, sidebar } from './sidebar.js';

/** @typedef {import('../sessions.js').Session} Session */

/** Below this width the sidebar is a drawer. The same number is in style.css. */
const NARROW = matchMedia('(max-width: 900px)');

/** Pixels from the end within which the transcript follows what is written. */
const NEAR_END = 80;

/** Milliseconds between two texts for screen readers. */
const ANNOUNCE_INTERVAL = 1500;

/** The whole page. Its elements are in the document itself, without shadow roots, so that one style sheet is enough. */
export class PlaygroundApp extends HTMLElement {
  app = new Playground();
  draft = '';
  /** @type {'' | 'events' | 'code'} */
  panel = '';
  snippet = 'curl';
  showsDeltas = false;
  isSidebarOpen = false;
  isDrawer = NARROW.matches;
  isAtEnd = true;
  /** The session that a menu or dialog is about. @type {Session | undefined} */
  target;
  #announced = '';
  #announceAt = 0;

  /** Resolves when what has changed is on the screen. @type {Promise<void> | undefined} */
  #update;

  connectedCallback() {
    this.app.addEventListener('change', () => this.requestUpdate());
    NARROW.addEventListener('change', ({ matches }) => {
      this.isDrawer = matches;
      this.requestUpdate();
    });
    this.addEventListener('click', (event) => void this.#onCopyCode(event));
    void this.app.start().then(() => {
      if (this.app.access === 'missing' || this.app.access === 'refused') this.openDialog('token');
      else this.#focusMessage();
    });
  }

  /** Renders before the next frame, once for whatever changes until then. */
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
    return html`
      <a class="skip" href="#message" @click=${(/** @type {Event} */ event) => this.#skip(event)}>Skip to the message</a>
      ${sidebar(this)}
      ${this.isDrawer && this.isSidebarOpen ? html`<div class="backdrop" @click=${() => this.toggleSidebar(false)}></div>` : nothing}
      <main class="main" ?inert=${this.isDrawer && this.isSidebarOpen}>
        ${this.#header()}
        <div class="transcript" id="transcript" tabindex="-1" @scroll=${() => this.#onScroll()}>
          ${app.turns.length === 0 ? this.#empty() : this.#turns()}
        </div>
        <div class="dock">
          ${this.isAtEnd || app.turns.length === 0 ? nothing : html`<button class="to-end" @click=${() => this.scrollToEnd()}>${icon('down')} Newest</button>`}
          ${app.notice === '' ? nothing : html`<div class="notice" role="alert">${icon('warning')}<span>${app.notice}</span><button class="icon-button" aria-label="Dismiss" @click=${() => app.dismissNotice()}>${icon('close')}</button></div>`}
          ${composer(this)}
        </div>
      </main>
      ${inspector(this)} ${dialogs(this)}
      <div class="off-screen" aria-live="polite" id="announcer">${this.#announced}</div>`;
  }

  #updated() {
    document.title =
      this.app.session || this.app.turns.length > 0 ? `${this.app.agent} · ${this.app.settings.title}` : this.app.settings.title;
    if (this.isAtEnd) this.#transcript()?.scrollTo({ top: 1e9 });
    this.#announce();
    this.#fitMessage();
  }

  #header() {
    const { app } = this;
    const agents = app.models.filter(({ isAgent }) => isAgent);
    const raw = app.models.filter(({ isAgent }) => !isAgent);
    const options = (/** @type {typeof agents} */ list) =>
      list.map(({ id }) => html`<option value=${id} .selected=${id === app.agent}>${id}</option>`);
    return html`
      <header class="top">
        <button class="icon-button only-narrow" aria-label="Open the menu" aria-expanded=${this.isSidebarOpen} aria-controls="sidebar" @click=${() => this.toggleSidebar(true)}>${icon('menu')}</button>
        <label class="agent">
          <span class="off-screen">Agent</span>
          <select id="agent" ?disabled=${app.models.length === 0 || app.isRunning} @change=${(/** @type {Event} */ event) => this.#pickAgent(event)}>
            ${app.models.length === 0 ? html`<option>No agent</option>` : nothing}
            ${agents.length > 0 ? html`<optgroup label="Agents">${options(agents)}</optgroup>` : nothing}
            ${raw.length > 0 ? html`<optgroup label="Raw models, without tools">${options(raw)}</optgroup>` : nothing}
          </select>
          ${icon('chevron')}
        </label>
        <span class="spread"></span>
        <button class="tool-button" aria-label="Code" aria-pressed=${this.panel === 'code'} title="Copy this request as code" @click=${() => this.showPanel(this.panel === 'code' ? '' : 'code')}>${icon('code')}<span>Code</span></button>
        <button class="tool-button" aria-label="Events" aria-pressed=${this.panel === 'events'} title="Events on the wire" @click=${() => this.showPanel(this.panel === 'events' ? '' : 'events')}>${icon('pulse')}<span>Events</span></button>
      </header>`;
  }

  #turns() {
    const { app } = this;
    return html`
      <div class="column" role="log" aria-live="off" aria-label="Conversation">
        ${app.olderThan === undefined ? nothing : html`<button class="plain older" @click=${() => app.loadOlder()}>Show earlier turns</button>`}
        ${app.turns.map((turn, at) => turnView(turn, app, at === app.turns.length - 1))}
      </div>`;
  }

  #empty() {
    const { app } = this;
    if (app.isOpening || app.access === 'checking')
      return html`<div class="column skeleton" aria-label="Loading"><i></i><i></i><i></i></div>`;
    if (app.access === 'missing' || app.access === 'refused') {
      return this.#welcome(
        'A token, please',
        'This server answers callers that it knows. Enter an API token to see its agents.',
        html`<button class="primary" @click=${() => this.openDialog('token')}>${icon('key')} Enter token</button>`,
      );
    }
    if (app.access === 'unreachable') {
      return this.#welcome(
        'The server does not answer',
        'It may be starting or stopping.',
        html`<button class="primary" @click=${() => location.reload()}>${icon('retry')} Try again</button>`,
      );
    }
    if (app.agent === '')
      return this.#welcome(
        'No agent yet',
        'The server has no agent or model that you can reach. Add one under `agents` in plugboard.yaml.',
        nothing,
      );
    const how = app.isLive
      ? 'Tool calls show here while they run.'
      : 'Answers stream in. This server has no live surface, so tool calls do not show.';
    return this.#welcome(
      html`Talk to <em>${app.agent}</em>`,
      how,
      html`<div class="suggestions">${app.settings.suggestions.map((text) => html`<button @click=${() => this.#say(text)}>${text}</button>`)}</div>`,
    );
  }

  /** @param {unknown} title @param {string} text @param {unknown} action */
  #welcome(title, text, action) {
    return html`<div class="welcome"><img src="playground/icon.svg" alt="" width="52" height="52"><h2>${title}</h2><p>${text}</p>${action}</div>`;
  }

  submit() {
    const text = this.draft.trim();
    if (text === '' || this.app.isRunning) return;
    this.#say(text);
    this.setDraft('');
  }

  /** @param {string} text */
  #say(text) {
    this.isAtEnd = true;
    void this.app.send(text);
    this.#focusMessage();
  }

  /** @param {string} draft */
  setDraft(draft) {
    this.draft = draft;
    this.requestUpdate();
  }

  newChat() {
    this.app.newChat();
    this.isAtEnd = true;
    this.toggleSidebar(false);
    this.#focusMessage();
  }

  /** @param {Session} session */
  async openSession(session) {
    this.isAtEnd = true;
    this.toggleSidebar(false);
    await this.app.open(session);
    this.#focusMessage();
  }

  /** @param {boolean} isOpen */
  toggleSidebar(isOpen) {
    if (this.isSidebarOpen === isOpen) return;
    this.isSidebarOpen = isOpen;
    this.requestUpdate();
    void this.updateComplete.then(() => {
      const selector = isOpen ? '#sidebar .only-narrow' : '.top .only-narrow';
      /** @type {HTMLElement | null} */ (this.querySelector(selector))?.focus();
    });
  }

  /** @param {PlaygroundApp['panel']} panel */
  showPanel(panel) {
    this.panel = panel;
    this.requestUpdate();
  }

  /** @param {string} id */
  showSnippet(id) {
    this.snippet = id;
    this.requestUpdate();
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

  /** Opens a popover beside the button that was pressed, where there is room for it. @param {Event} event @param {string} selector */
  openPopover(event, selector) {
    const button = /** @type {HTMLElement} */ (event.currentTarget);
    const popover = /** @type {HTMLElement} */ (this.querySelector(selector));
    if (!popover.togglePopover({ source: button })) return;
    const { left, right, bottom, top } = button.getBoundingClientRect();
    const { offsetWidth, offsetHeight } = popover;
    const start = left + offsetWidth > innerWidth - 8 ? right - offsetWidth : left;
    popover.style.left = `${Math.max(8, start)}px`;
    popover.style.top = `${bottom + offsetHeight + 8 > innerHeight ? Math.max(8, top - offsetHeight - 6) : bottom + 6}px`;
    /** @type {HTMLElement | null} */ (popover.querySelector('button, input:checked'))?.focus();
  }

  /** @param {'token' | 'rename' | 'delete'} name */
  openDialog(name) {
    /** @type {HTMLElement} */ (this.querySelector('#session-menu')).hidePopover();
    this.requestUpdate();
    void this.updateComplete.then(() => {
      const dialog = /** @type {HTMLDialogElement} */ (this.querySelector(`#${name}-dialog`));
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
    const field = /** @type {HTMLInputElement} */ (this.querySelector('#token'));
    field.value = '';
    if (this.app.access === 'refused') return field.focus();
    if (token !== '') this.closeDialogs();
    this.#focusMessage();
  }

  async renameSession(/** @type {string} */ title) {
    this.closeDialogs();
    if (this.target && title !== '') await this.app.rename(this.target, title);
  }

  async deleteSession() {
    this.closeDialogs();
    if (this.target) await this.app.remove(this.target);
    this.#focusMessage();
  }

  forkSession() {
    /** @type {HTMLElement} */ (this.querySelector('#session-menu')).hidePopover();
    this.toggleSidebar(false);
    if (this.target) void this.app.fork(this.target);
  }

  scrollToEnd() {
    this.isAtEnd = true;
    this.requestUpdate();
  }

  #transcript() {
    return this.querySelector('#transcript');
  }

  #onScroll() {
    const area = this.#transcript();
    if (!area) return;
    const isAtEnd = area.scrollHeight - area.scrollTop - area.clientHeight < NEAR_END;
    if (isAtEnd === this.isAtEnd) return;
    this.isAtEnd = isAtEnd;
    this.requestUpdate();
  }

  /** @param {Event} event */
  #pickAgent(event) {
    this.app.selectAgent(/** @type {HTMLSelectElement} */ (event.target).value);
    this.#focusMessage();
  }

  /** @param {Event} event */
  #skip(event) {
    event.preventDefault();
    this.#focusMessage();
  }

  /** On a touch screen the keyboard would cover half of the page. */
  #focusMessage() {
    void this.updateComplete.then(() => {
      if (matchMedia('(hover: hover)').matches) this.#message()?.focus();
    });
  }

  #message() {
    return /** @type {HTMLTextAreaElement | null} */ (this.querySelector('#message'));
  }

  #fitMessage() {
    const area = this.#message();
    if (!area) return;
    if (area.value !== this.draft) area.value = this.draft;
    area.style.height = 'auto';
    area.style.height = `${Math.min(area.scrollHeight, 220)}px`;
  }

  /** Screen readers are given a text now and then, not each token. */
  #announce() {
    const text = this.app.announcement;
    if (text === this.#announced) return;
    const wait = this.#announceAt + ANNOUNCE_INTERVAL - performance.now();
    if (wait > 0) return void setTimeout(() => this.requestUpdate(), wait);
    this.#announceAt = performance.now();
    this.#announced = text;
    this.requestUpdate();
  }

  /** @param {Event} event */
  async #onCopyCode(event) {
    const button = /** @type {Element} */ (event.target).closest('[data-action="copy-code"]');
    const code = button?.closest('.code-frame')?.querySelector('code');
    if (!button || !code) return;
    await copyFrom(/** @type {Event} */ (/** @type {unknown} */ ({ currentTarget: button })), code.textContent ?? '');
  }
}

customElements.define('playground-app', PlaygroundApp);
