import { html, nothing } from 'lit/html.js';
import { waitingCalls } from '../turn.js';
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

/** Says before a message is sent that it denies the calls that wait. @param {View} view */
export function waitingNote({ app }) {
  const waiting = app.chats.flatMap(({ changesAgent, turns }) => {
    const last = turns.at(-1);
    return last && !changesAgent ? waitingCalls(last) : [];
  }).length;
  if (waiting === 0) return nothing;
  const what = waiting === 1 ? 'A tool call waits for your decision' : `${waiting} tool calls wait for your decision`;
  const them = waiting === 1 ? 'it' : 'them';
  return html`
    <p id="waiting-note" class="notice quiet" role="status">
      ${what}. ${app.chats.every(({ canDecide }) => canDecide) ? 'Sending a message' : 'Any other message'} denies ${them}.
    </p>`;
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
