import { live } from 'lit/directives/live.js';
import { repeat } from 'lit/directives/repeat.js';
import { html, nothing } from 'lit/html.js';
import { openDialog } from './dialogs.js';
import { icon, iconButton } from './parts.js';
import { loadOlder, noteEnd } from './scrolling.js';
import { turnView } from './turn.js';

/** @typedef {import('../conversation.js').Conversation} Conversation */
/** @typedef {import('../server.js').Model} Model */
/** @typedef {import('./app.js').PlaygroundApp} View */

/** The conversations that are shown: one, or two side by side. @param {View} view */
export function columns(view) {
  const { chats } = view.app;
  const [chat] = chats;
  if (chats.length === 1 && chat) return chat.turns.length > 0 ? turns(chat, view, 'Conversation') : empty(chat, view);
  return html`<div class="columns">${chats.map((one, at) => column(one, at, view))}</div>`;
}

/** @param {Conversation} chat @param {number} at @param {View} view */
function column(chat, at, view) {
  const name = at === 0 ? 'First' : 'Second';
  const current = view.app.placeOf(chat);
  const stop = html`<button class="small" @click=${() => current().stop()}>${icon('stop')} Stop</button>`;
  return html`
    <section class="pane" tabindex="-1" aria-label=${`${name} conversation`}
      @scroll=${(/** @type {Event} */ event) => noteEnd(view, event)}>
      <header class="column-head">
        ${agentSelect(chat, view, `${name} agent`)}
        ${iconButton('info', 'About this agent', () => view.openCard(current()))}
        <span class="spread"></span>
        ${chat.isRunning ? stop : nothing}
        ${iconButton('close', `Close the ${name.toLowerCase()} conversation`, () => view.app.closeColumn(current()))}
      </header>
      ${chat.turns.length > 0 ? turns(chat, view, `${name} turns`) : empty(chat, view)}
      ${chat.notice === '' ? nothing : html`<p class="not-kept" role="alert">${chat.notice}</p>`}
    </section>`;
}

/** @param {Conversation} chat @param {View} view @param {string} label */
function turns(chat, view, label) {
  const onOlder = (/** @type {Event} */ { currentTarget }) =>
    loadOlder(view, chat, /** @type {Element} */ (currentTarget).closest('.pane'));
  const older = html`<button class="plain older" @click=${onOlder}>Show earlier turns</button>`;
  return html`
    <div class="column" role="log" aria-live="off" aria-label=${label}>
      ${chat.history.olderThan === undefined ? nothing : older} ${repeat(
        chat.turns,
        (turn) => turn,
        (turn) => turnView(turn, chat, view),
      )}
    </div>`;
}

/** @param {Conversation} chat @param {View} view @param {string} label */
export function agentSelect(chat, view, label) {
  const { models } = view.app.server;
  const current = view.app.placeOf(chat);
  const onChange = (/** @type {Event} */ { target }) =>
    view.pickAgent(/** @type {HTMLSelectElement} */ (target).value, current());
  const options = (/** @type {string} */ group, /** @type {(model: Model) => boolean} */ belongs) => {
    const shown = models
      .filter(belongs)
      .map(({ id }) => html`<option value=${id} .selected=${live(id === chat.agent)}>${id}</option>`);
    return shown.length > 0 ? html`<optgroup label=${group}>${shown}</optgroup>` : nothing;
  };
  return html`
    <div class="agent">
      <select aria-label=${label} ?disabled=${models.length === 0 || chat.isRunning} @change=${onChange}>
        ${models.length === 0 ? html`<option>No agent</option>` : nothing}
        ${options('Agents', ({ isAgent }) => isAgent)}
        ${options('Raw models, without tools', ({ isAgent }) => !isAgent)}
      </select>
      ${icon('chevron')}
    </div>`;
}

/** What a conversation without turns shows. @param {Conversation} chat @param {View} view */
function empty(chat, view) {
  const { server } = view.app;
  if (chat.history.isOpening || server.access === 'checking')
    return html`<div class="column skeleton"><i></i><i></i><i></i></div>`;
  if (server.needsToken) {
    const enter = html`<button class="primary" @click=${() => openDialog(view, 'token')}>${icon('key')} Enter token</button>`;
    return welcome('Enter a token', 'This server requires an API token. You will see the agents that it can reach.', enter);
  }
  if (server.access === 'unreachable') {
    const again = html`<button class="primary" @click=${() => location.reload()}>${icon('retry')} Try again</button>`;
    return welcome('The server does not answer', 'It may be starting or stopping.', again);
  }
  if (chat.agent === '') return welcome('No agent yet', html`Add one under <code>agents</code> in plugboard.yaml.`, nothing);
  return welcome(
    html`Talk to <em>${chat.agent}</em>`,
    server.isLive
      ? 'Tool calls show here while they run.'
      : html`Tool calls do not show: the server does not use <code>websocket</code>.`,
    suggestions(chat, view),
  );
}

/**
 * First messages; beside another conversation, its last message. @param {Conversation} chat @param
 * {View} view
 */
function suggestions(chat, view) {
  const { chats, server } = view.app;
  const other = chats.find((one) => one !== chat)?.turns.at(-1)?.input;
  const current = view.app.placeOf(chat);
  if (other) return html`<button @click=${() => current().send(other)}>${icon('retry')} <bdi>${other}</bdi></button>`;
  return server.settings.suggestions.map((text) => html`<button dir="auto" @click=${() => view.say(text)}>${text}</button>`);
}

/** @param {unknown} title @param {unknown} text @param {unknown} actions */
function welcome(title, text, actions) {
  return html`
    <div class="welcome">
      <img src="playground/icon.svg" alt="" width="52" height="52">
      <h2>${title}</h2>
      <p>${text}</p>
      <div class="suggestions">${actions}</div>
    </div>`;
}
