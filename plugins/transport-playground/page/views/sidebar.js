import { html, nothing } from 'lit/html.js';
import { sessionTitle } from '../sessions.js';
import { ago, icon } from './parts.js';

/** @typedef {import('./app.js').PlaygroundApp} View */
/** @typedef {import('../sessions.js').Session} Session */

/** The sessions, who the server takes the caller for, and how the server is. @param {View} view */
export function sidebar(view) {
  const { app } = view;
  return html`
    <aside class="sidebar" id="sidebar" aria-label="Sessions and server" ?inert=${view.isDrawer && !view.isSidebarOpen}>
      <div class="brand">
        <img src="playground/icon.svg" alt="" width="26" height="26">
        <h1>${app.settings.title}</h1>
        <button class="icon-button only-narrow" aria-label="Close the menu" @click=${() => view.toggleSidebar(false)}>${icon('close')}</button>
      </div>
      <button class="new-chat" @click=${() => view.newChat()}>${icon('plus')} New chat</button>
      <nav class="sessions" aria-label="Sessions">${sessionList(view)}</nav>
      ${serverBox(view)}
    </aside>`;
}

/** @param {View} view */
function sessionList(view) {
  const { sessions } = view.app;
  if (sessions.status === 'off') {
    return view.app.canKeepSessions || view.app.access === 'checking' || view.app.access === 'missing'
      ? nothing
      : html`<p class="hint">This server does not list sessions: its configuration has no <code>conversations</code> transport.</p>`;
  }
  if (sessions.status === 'failed') return html`<p class="hint">Sessions cannot be listed. ${sessions.error}</p>`;
  if (sessions.status === 'loading') return html`<div class="skeleton" aria-hidden="true"><i></i><i></i><i></i></div>`;
  if (sessions.list.length === 0) return html`<p class="hint">No sessions yet. Your first message begins one.</p>`;
  return html`
    <h2>Sessions</h2>
    <ul>${sessions.list.map((session) => row(session, view))}</ul>
    ${sessions.hasMore ? html`<button class="plain more" @click=${() => view.app.moreSessions()}>Show more</button>` : nothing}`;
}

/** @param {Session} session @param {View} view */
function row(session, view) {
  const isOpen = view.app.session?.id === session.id;
  const title = sessionTitle(session);
  return html`
    <li class="session" data-open=${isOpen}>
      <button class="session-open" aria-current=${isOpen ? 'true' : nothing} title=${title} @click=${() => view.openSession(session)}>
        <span class="session-title">${title}</span>
        <span class="session-note">${session.agent} · ${session.status === 'running' ? 'running' : ago(session.updated_at)}</span>
      </button>
      <button class="icon-button session-more" aria-label=${`Actions for ${title}`} aria-haspopup="menu" @click=${(/** @type {Event} */ event) => view.openMenu(event, session)}>${icon('more')}</button>
    </li>`;
}

/** @type {Record<import('../playground.js').Access, [string, string]>} text and tone */
const ACCESS = {
  checking: ['Connecting', 'quiet'],
  open: ['Open, no token needed', 'quiet'],
  missing: ['Token needed', 'warn'],
  ok: ['Token accepted', 'good'],
  refused: ['Token refused', 'bad'],
  unreachable: ['Not connected', 'bad'],
};

/** @type {Record<import('../playground.js').Playground['health'], [string, string]>} */
const HEALTH = {
  unknown: ['Checking', 'quiet'],
  ready: ['Ready', 'good'],
  'not-ready': ['Not ready', 'warn'],
  unreachable: ['Unreachable', 'bad'],
};

/** @param {View} view */
function serverBox(view) {
  const { app } = view;
  const [access, accessTone] = ACCESS[app.access];
  const [health, healthTone] = HEALTH[app.health];
  const project = app.project === '' ? '' : ` · ${app.project}`;
  return html`
    <div class="server">
      <div class="server-row" title=${`${location.host}`}>
        <span class="dot" data-tone=${healthTone}></span><span>Server</span><b>${health}</b>
      </div>
      ${
        app.settings.token
          ? html`<button class="server-row" @click=${() => view.openDialog('token')}>
            <span class="dot" data-tone=${accessTone}></span><span>Token</span><b>${access}${project}</b></button>`
          : html`<div class="server-row"><span class="dot" data-tone=${accessTone}></span><span>Access</span><b>${access}</b></div>`
      }
      <div class="server-foot">
        <span>v${app.settings.version}</span>
        ${app.settings.docs === null ? nothing : html`<a href=${app.settings.docs} target="_blank" rel="noopener noreferrer">Docs</a>`}
      </div>
    </div>`;
}

/** The dialogs and the menu of a session, of which one at most is open. @param {View} view */
export function dialogs(view) {
  const name = view.target ? sessionTitle(view.target) : '';
  return html`
    <div id="session-menu" class="popover menu" popover role="menu" aria-label="Session" @keydown=${onMenuKey}>
      <button role="menuitem" @click=${() => view.openDialog('rename')}>${icon('edit')} Rename</button>
      <button role="menuitem" @click=${() => view.forkSession()}>${icon('fork')} Fork</button>
      <button role="menuitem" class="danger" @click=${() => view.openDialog('delete')}>${icon('trash')} Delete</button>
    </div>
    ${tokenDialog(view)}
    ${dialog(view, {
      id: 'rename',
      title: 'Rename session',
      body: html`<label for="name">Name</label><input id="name" name="value" maxlength="200" required autocomplete="off" .value=${name}>`,
      button: 'Rename',
      done: (value) => view.renameSession(value),
    })}
    ${dialog(view, {
      id: 'delete',
      title: 'Delete this session?',
      body: html`<p><b>${name}</b> and all it holds will be gone from the server. A turn that runs in it ends.</p>`,
      button: 'Delete',
      done: () => view.deleteSession(),
    })}`;
}

/** Arrows move in the menu. @param {KeyboardEvent} event */
function onMenuKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const items = [.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll('button')];
  const at = items.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  items.at((at + step) % items.length)?.focus();
}

/** @param {View} view */
function tokenDialog(view) {
  const { access, api } = view.app;
  const isRefused = access === 'refused';
  const [tone, state] = isRefused
    ? ['bad', 'The server refused this token: it is wrong, expired or revoked.']
    : access === 'ok'
      ? ['good', 'A token is in use, and accepted.']
      : ['quiet', 'Made by: plugboard token create'];
  return dialog(view, {
    id: 'token',
    title: 'API token',
    body: html`
      <p>This server asks for a token. It is kept in this tab until you close it, and sent to this server only.</p>
      <label for="token">Token</label>
      <input id="token" name="value" type="password" autocomplete="off" spellcheck="false" required placeholder="svcp_…" aria-describedby="token-state" aria-invalid=${isRefused}>
      <p id="token-state" class="field-state" role="status" data-tone=${tone}>${state}</p>`,
    extra:
      api.token === ''
        ? nothing
        : html`<button type="button" class="plain danger" @click=${() => view.enterToken('')}>Forget token</button>`,
    button: 'Use token',
    done: (value) => view.enterToken(value),
  });
}

/**
 * @param {View} view
 * @param {{ id: string, title: string, body: unknown, extra?: unknown, button: string, done: (value: string) => unknown }} parts
 */
function dialog(view, { id, title, body, extra = nothing, button, done }) {
  /** @param {SubmitEvent} event */
  const onSubmit = (event) => {
    event.preventDefault();
    const field = /** @type {HTMLInputElement | null} */ (
      /** @type {HTMLFormElement} */ (event.target).elements.namedItem('value')
    );
    done(field?.value.trim() ?? '');
  };
  return html`
    <dialog id=${`${id}-dialog`} aria-labelledby=${`${id}-title`}>
      <form @submit=${onSubmit}>
        <h2 id=${`${id}-title`}>${title}</h2>
        ${body}
        <div class="dialog-buttons">
          ${extra}<span class="spread"></span>
          <button type="button" class="plain" @click=${() => view.closeDialogs()}>Cancel</button>
          <button class="primary" data-is=${id}>${button}</button>
        </div>
      </form>
    </dialog>`;
}
