import { html, nothing } from 'lit/html.js';
import { isAsked, isDropped, isRunning } from '../turn.js';
import { openBranch, sendAgain } from '../versions.js';
import { messageImages } from './attachments.js';
import { icon, iconButton } from './parts.js';
import { keepPlace } from './scrolling.js';

/** @typedef {import('../conversation.js').Conversation} Conversation */
/** @typedef {import('../sessions.js').Session} Session */
/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('./app.js').PlaygroundApp} View */

/**
 * The message of a turn, or the field to change it, and its other versions.
 * @param {Turn} turn @param {Conversation} chat @param {View} view
 */
export function asked(turn, chat, view) {
  if (view.edited === turn) return editor(turn, chat, view);
  const text = turn.input === '' ? nothing : html`<p dir="auto">${turn.input}</p>`;
  return html`
    ${isAsked(turn) ? html`<div class="asked">${messageImages(turn.images)}${text}</div>` : nothing}
    ${versions(turn, chat, view)}`;
}

/** @param {Turn} turn @param {Conversation} chat @param {View} view */
function versions(turn, chat, view) {
  const { versions, at } = chat.history.versionsOf(turn);
  if (versions.length < 2 || at < 0) return nothing;
  const numberOf = (/** @type {Turn} */ one) => one.number || one.after + 1;
  const open = (/** @type {Event} */ { currentTarget }, /** @type {Session} */ session) => {
    const current = view.app.placeOf(chat);
    const at = () => current().turns.findIndex((one) => numberOf(one) === numberOf(turn));
    const area = /** @type {Element} */ (currentTarget).closest('.pane');
    void keepPlace(view, area, at, () => openBranch(view.app, chat, session));
  };
  const step = (/** @type {number} */ to, /** @type {string} */ sign, /** @type {string} */ label) => {
    const session = versions[to];
    return html`
      <button type="button" class="small" aria-label=${label} ?disabled=${!session}
        @click=${(/** @type {Event} */ event) => session && open(event, session)}>${sign}</button>`;
  };
  return html`
    <div class="versions" role="group" aria-label="Versions of this message">
      ${step(at - 1, '‹', 'Previous version')}<span>${at + 1}/${versions.length}</span>${step(at + 1, '›', 'Next version')}
    </div>`;
}

/** @param {Turn} turn @param {Conversation} chat @param {View} view */
function editor(turn, chat, view) {
  const close = () => view.editTurn(undefined);
  const onSubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const { value } = /** @type {HTMLTextAreaElement} */ (view.find('#edited'));
    if (value.trim() === '' && turn.images.length === 0) return;
    if (chat.isRunning) return chat.setNotice('A turn of this session runs. Send the change when it has ended.');
    close();
    void sendAgain(view.app, chat, turn, value.trim());
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Escape') {
      event.preventDefault(); // it would stop a turn beside this one
      close();
    } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) onSubmit(event);
  };
  return html`
    <form class="edit" @submit=${onSubmit}>
      <textarea id="edited" dir="auto" rows=${Math.min(12, turn.input.split('\n').length + 1)} aria-label="Changed message"
        .value=${turn.input} @keydown=${onKey}></textarea>
      <div class="edit-row">
        <span class="hint">${turn.isKept && chat.session ? 'What follows stays as another version.' : ''}</span>
        <button type="button" class="plain" @click=${close}>Cancel</button>
        <button class="primary">Send</button>
      </div>
    </form>`;
}

/**
 * Says that the session does not have a turn, or that its connection is lost. @param {Turn} turn
 * @param {Conversation} chat
 */
export function notKept(turn, { isReconnecting, isStateless }) {
  if (isRunning(turn)) {
    return isReconnecting ? html`<p class="not-kept" role="status">The connection was lost. Reconnecting…</p>` : nothing;
  }
  if (isStateless || !isDropped(turn)) return nothing;
  const text = turn.isCut
    ? 'It is not known whether the session has this message.'
    : 'Not kept: the session does not have this message.';
  return html`<p class="not-kept">${text}</p>`;
}

/** @param {Turn} turn @param {Conversation} chat @param {View} view @param {boolean} isLast */
export function again(turn, chat, view, isLast) {
  if (!isAsked(turn) || isRunning(turn)) return nothing;
  const onRetry = () => {
    if (!isLast) view.focusMessage(); // it goes to the end
    void sendAgain(view.app, chat, turn);
  };
  const retry = html`<button class="small" @click=${onRetry}>${icon('retry')} Retry</button>`;
  return html`
    ${iconButton('edit', 'Edit and send again', () => view.editTurn(turn), 'edit-turn')}
    ${isLast || isDropped(turn) ? retry : nothing}`;
}
