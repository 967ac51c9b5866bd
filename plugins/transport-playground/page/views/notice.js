import { html, nothing } from 'lit/html.js';
import { icon, iconButton } from './parts.js';

/** @typedef {import('./app.js').PlaygroundApp} View */

/** What went wrong outside a turn, or what the next message does. @param {View} view */
export function notice({ app }) {
  const { chat, chats, server } = app;
  const text = app.notice || (chats.length === 1 ? chat.notice : '');
  if (text !== '') {
    return html`
      <div class="notice" role="alert">
        ${icon('warning')}<span>${text}</span>${iconButton('close', 'Dismiss', () => app.dismissNotice())}
      </div>`;
  }
  if (server.newVersion !== '') return replaced(server.newVersion);
  const changing = chats.find(({ changesAgent }) => changesAgent);
  return changing ? changeOfAgent(changing.agent) : nothing;
}

/** Says that the server is newer than the page. @param {string} version */
function replaced(version) {
  return html`
    <div class="notice quiet" role="status">
      <span>The server was replaced by version ${version}. Reload the page to use it: what you typed stays.</span>
      <button class="plain" @click=${() => location.reload()}>Reload</button>
    </div>`;
}

/** @param {string} agent */
function changeOfAgent(agent) {
  return html`
    <p class="notice quiet" role="status">
      Your next message begins a new session with ${agent}. This conversation stays in the list.
    </p>`;
}
