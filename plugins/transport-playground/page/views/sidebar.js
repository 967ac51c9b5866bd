import { repeat } from 'lit/directives/repeat.js';
import { html, nothing } from 'lit/html.js';
import { newestOfGroups, rootOf } from '../branches.js';
import { filterSessions } from '../session-actions.js';
import { sessionTitle, titleOf } from '../sessions.js';
import { openDialog } from './dialogs.js';
import { ago, icon, iconButton } from './parts.js';

/** @typedef {import('./app.js').PlaygroundApp} View */
/** @typedef {import('../sessions.js').Session} Session */

/** The sessions, and the state of the server and the token. @param {View} view */
export function sidebar(view) {
  return html`
    <aside class="sidebar" id="sidebar" aria-label="Sessions and server" ?inert=${view.isDrawer && !view.isSidebarOpen}>
      <div class="brand">
        <img src="playground/icon.svg" alt="" width="26" height="26">
        <b>${view.app.server.settings.title}</b>
        ${iconButton('close', 'Close the menu', () => view.toggleSidebar(false), 'only-narrow')}
      </div>
      <button class="new-chat" @click=${() => view.newChat()}>${icon('plus')} New chat</button>
      ${finder(view)}
      <nav class="sessions" aria-label="Sessions">${tabChats(view)} ${sessionList(view)}</nav>
      ${serverBox(view)}
      <div id="session-menu" class="popover menu" popover role="menu" aria-label="Session" @keydown=${onMenuKey}>
        <button role="menuitem" @click=${() => openDialog(view, 'rename')}>${icon('edit')} Rename</button>
        <button role="menuitem" @click=${() => view.forkSession()}>${icon('fork')} Fork</button>
        <button role="menuitem" @click=${() => save(view, 'md')}>${icon('save')} Export as Markdown</button>
        <button role="menuitem" @click=${() => save(view, 'json')}>${icon('save')} Export as JSON</button>
        <button role="menuitem" class="danger" @click=${() => openDialog(view, 'delete')}>${icon('trash')} Delete</button>
      </div>
    </aside>`;
}

/** The search and the filters of the list. @param {View} view */
function finder(view) {
  const { app } = view;
  const { sessions, server } = app;
  const { search, agent, status } = sessions.filter;
  if (sessions.status !== 'ready' || (sessions.list.length === 0 && !sessions.isFiltered)) return nothing;
  const isOn = agent !== '' || status !== '';
  const onSearch = (/** @type {Event} */ { target }) =>
    filterSessions(app, { search: /** @type {HTMLInputElement} */ (target).value });
  return html`
    <div class="finder">
      <input type="search" dir="auto" aria-label="Search sessions by title and key" placeholder="Search titles and keys"
        maxlength="200" autocomplete="off" .value=${search} @input=${onSearch}>
      <button class="icon-button" aria-label=${isOn ? 'Filter sessions, a filter is on' : 'Filter sessions'}
        title="Filter" aria-pressed=${isOn} aria-haspopup="dialog" popovertarget="session-filter">
        ${icon('filter')}
      </button>
    </div>
    <div id="session-filter" class="popover" popover role="dialog" aria-label="Filter sessions">
      ${choice('Agent', agent, [['', 'All agents'], ...server.models.map(({ id }) => [id, id])], (value) =>
        filterSessions(app, { agent: value }),
      )}
      ${choice(
        'State',
        status,
        [
          ['', 'Any state'],
          ['running', 'Running'],
          ['idle', 'Idle'],
        ],
        (value) => filterSessions(app, { status: value }),
      )}
    </div>`;
}

/**
 * @param {string} label @param {string} chosen @param {string[][]} options values and their texts
 * @param {(value: string) => void} onChange
 */
function choice(label, chosen, options, onChange) {
  const change = (/** @type {Event} */ { target }) => onChange(/** @type {HTMLSelectElement} */ (target).value);
  return html`
    <label class="choice">${label}
      <select @change=${change}>
        ${options.map(([value, text]) => html`<option value=${value} .selected=${value === chosen}>${text}</option>`)}
      </select>
    </label>`;
}

/** Downloads the session of the menu. @param {View} view @param {'json' | 'md'} format */
async function save(view, format) {
  view.find('#session-menu')?.hidePopover();
  if (!view.target) return;
  try {
    const part = await view.loaded(import('../export.js'));
    await part?.exportSession(view.app.api, view.target, sessionTitle(view.target), format);
  } catch (error) {
    view.notify(`The session was not exported. ${/** @type {Error} */ (error).message}`);
  }
}

/** Conversations that the server does not list: they live in this tab. @param {View} view */
function tabChats(view) {
  const { chats, memory } = view.app;
  if (memory.unlisted.length === 0) return nothing;
  const rowOf = (/** @type {{ id: string, agent: string, title: string }} */ { id, agent, title }) => {
    const isOpen = chats.some((chat) => chat.id === id);
    return html`
      <li class="session tab-chat" data-open=${isOpen}>
        <button class="session-open" aria-current=${isOpen} title=${title} @click=${() => view.openTabChat(id)}>
          <span class="session-title" dir="auto">${title}</span><span class="session-note">${agent}</span>
        </button>
      </li>`;
  };
  const rows = memory.unlisted.map(({ id, agent, turns }) => rowOf({ id, agent, title: titleOf(turns[0]?.input ?? '') }));
  return html`<h2>In this tab only</h2><ul>${rows}</ul>`;
}

/** @param {View} view */
function sessionList(view) {
  const { app } = view;
  const { status, list, error, hasMore } = app.sessions;
  if (app.server.isOpen && !app.server.canKeepSessions) {
    return html`<p class="hint">No list of sessions: the server does not use the <code>conversations</code> transport.</p>`;
  }
  if (status === 'failed') return html`<p class="hint">Sessions cannot be listed. ${error}</p>`;
  if (status !== 'ready') return nothing;
  if (list.length === 0 && app.sessions.isFiltered) {
    const clear = () => filterSessions(app, { search: '', agent: '', status: '' });
    return html`<p class="hint">No session matches. <button class="plain" @click=${clear}>Show all</button></p>`;
  }
  if (list.length === 0) return html`<p class="hint">No sessions yet. Your first message begins one.</p>`;
  return html`
    <h2>Sessions</h2>
    <ul>${repeat(newestOfGroups(list), rootOf, (session) => row(session, view))}</ul>
    ${hasMore ? html`<button class="plain more" @click=${() => app.moreSessions()}>Show more</button>` : nothing}`;
}

/** @param {Session} session @param {View} view */
function row(session, view) {
  const { agent, updated_at } = session;
  const isOpen = view.app.isShown(session);
  const title = sessionTitle(session);
  return html`
    <li class="session" data-open=${isOpen}>
      <button class="session-open" aria-current=${isOpen} title=${title} @click=${() => view.openSession(session)}>
        <span class="session-title" dir="auto">${title}</span>
        <span class="session-note">${agent} · ${view.app.isRunningIn(session) ? 'running' : ago(updated_at)}</span>
      </button>
      <button type="button" class="icon-button session-more" title=${`Actions for ${title}`} aria-label=${`Actions for ${title}`}
        aria-haspopup="menu" popovertarget="session-menu" @click=${() => view.aimMenu(session)}>
        ${icon('more')}
      </button>
    </li>`;
}

/**
 * Text and tone of each state of the token. @type {Record<import('../server.js').Access, [string,
 * string]>}
 */
const ACCESS = {
  checking: ['Connecting', 'quiet'],
  open: ['Open, no token', 'quiet'],
  missing: ['Token needed', 'warn'],
  ok: ['Token accepted', 'good'],
  refused: ['Token refused', 'bad'],
  unreachable: ['Not connected', 'bad'],
};

/**
 * Text and tone of each state of the server. @type {Record<import('../server.js').Server['health'],
 * [string, string]>}
 */
export const HEALTH = {
  unknown: ['Checking', 'quiet'],
  ready: ['Ready', 'good'],
  'not-ready': ['Not ready', 'warn'],
  unreachable: ['Reconnecting', 'bad'],
};

/** @param {View} view */
function serverBox(view) {
  const { settings, access, health } = view.app.server;
  const [word, tone] = ACCESS[access];
  const [healthWord, healthTone] = HEALTH[health];
  const status = html`<span class="dot" data-tone=${tone}></span><span>Access</span><b>${word}</b>`;
  return html`
    <div class="server">
      <div class="server-row"><span class="dot" data-tone=${healthTone}></span><span>Server</span><b>${healthWord}</b></div>
      ${
        settings.token
          ? html`<button class="server-row" title="Change the token" @click=${() => openDialog(view, 'token')}>${status}</button>`
          : html`<div class="server-row">${status}</div>`
      }
      <div class="server-foot">
        <span>v${settings.version}</span>
        ${settings.docs && html`<a href=${settings.docs} target="_blank" rel="noopener noreferrer">Docs</a>`}
      </div>
    </div>`;
}

/** The arrow keys move in the menu. @param {KeyboardEvent} event */
function onMenuKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const items = [.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll('button')];
  const at = items.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  items.at((at + step) % items.length)?.focus();
}
