import { html, nothing } from 'lit/html.js';
import { attachButton, thumbnails } from './attachments.js';
import { icon } from './parts.js';
import { HEALTH } from './sidebar.js';

/** @typedef {import('./app.js').PlaygroundApp} View */

/** The field for the next message, and how the conversation is kept. @param {View} view */
export function composer(view) {
  const { chat, server } = view.app;
  const off = chat.agent === '';
  const onInput = (/** @type {Event} */ { target }) => view.app.chat.setDraft(/** @type {HTMLTextAreaElement} */ (target).value);
  const onSubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    submit(view);
  };
  const stop = html`
    <button type="button" class="round stop" title="Stop (Esc)" aria-label="Stop" @click=${() => view.app.stop()}>
      ${icon('stop')}
    </button>`;
  const send = html`
    <button class="round" title="Send (Enter)" aria-label="Send" ?disabled=${off || (chat.draft.trim() === '' && chat.images.length === 0)}>
      ${icon('send')}
    </button>`;
  return html`
    <form class="composer" @submit=${onSubmit}>
      ${thumbnails(view)}
      <textarea id="message" dir="auto" rows="1" autocomplete="off" aria-label="Message" aria-describedby="waiting-note" placeholder=${view.app.chats.length > 1 ? 'Message both' : `Message ${chat.agent}`}
        ?disabled=${off} @input=${onInput} @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, view)}></textarea>
      <div class="composer-row">
        ${attachButton(view)}
        <button type="button" class="chip" aria-haspopup="dialog" popovertarget="mode" ?hidden=${view.app.chats.length > 1}>
          <span class="chip-dot" data-on=${!chat.isStateless}
            data-tone=${chat.isStateless ? 'quiet' : HEALTH[server.health][1]}></span>
          ${chat.isStateless ? 'Stateless' : html`Session <code>${chat.sessionKey}</code>`} ${icon('chevron')}
        </button>
        <span class="spread"></span>
        <span class="keys" aria-hidden="true">${view.app.isRunning ? 'Esc to stop' : 'Shift + Enter for a new line'}</span>
        ${view.app.isRunning ? stop : send}
      </div>
    </form>
    ${modePopover(view)}`;
}

/**
 * Enter sends, Shift+Enter starts a line, Esc stops. @param {KeyboardEvent} event @param {View}
 * view
 */
function onKey(event, view) {
  const { key, shiftKey, isComposing } = event;
  const sends = key === 'Enter' && !shiftKey && !isComposing;
  const stops = key === 'Escape' && view.app.isRunning;
  if (!sends && !stops) return;
  event.preventDefault();
  if (sends) submit(view);
  else view.app.stop();
}

/** Sends the draft with its images. @param {View} view */
function submit(view) {
  const { app } = view;
  const { draft, images } = app.chat;
  const text = draft.trim();
  if ((text === '' && images.length === 0) || app.isRunning) return;
  app.chat.setDraft('');
  app.chat.setImages([]);
  view.say(text, images);
}

/** Shows the draft, in a field as high as the text. @param {View} view */
export function fitMessage(view) {
  const { draft } = view.app.chat;
  const field = /** @type {HTMLTextAreaElement} */ (view.find('#message'));
  if (field.value !== draft) field.value = draft;
  field.style.height = 'auto';
  field.style.height = `${field.scrollHeight}px`; // the style sheet has a limit
}

/** @param {View} view */
function modePopover(view) {
  const { isStateless, isRunning: off, sessionKey } = view.app.chat;
  const onSubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const field = /** @type {HTMLInputElement} */ (view.find('#session-key'));
    view.app.setMode(false, field.value.trim());
    view.find('#mode')?.hidePopover();
  };
  const option = (/** @type {boolean} */ value, /** @type {string} */ label, /** @type {string} */ text) => html`
    <label class="option">
      <input type="radio" name="mode" .checked=${isStateless === value} ?disabled=${off} @change=${() => view.app.setMode(value)}>
      <span><b>${label}</b><small>${text}</small></span>
    </label>`;
  const keyForm = html`
    <form class="key-form" @submit=${onSubmit}>
      <label for="session-key">Session key</label>
      <div class="field">
        <input id="session-key" maxlength="512" autocomplete="off" spellcheck="false" .value=${sessionKey} ?disabled=${off}>
        <button class="plain" ?disabled=${off}>Use</button>
      </div>
      <small>Send it as <code>session_id</code> to continue this session from any client.</small>
    </form>`;
  return html`
    <div id="mode" class="popover" popover role="dialog" aria-label="Session or stateless">
      ${option(false, 'Session', 'The server keeps the conversation. A request carries the new message and the key.')}
      ${option(true, 'Stateless', 'The server keeps nothing. A request carries the whole conversation.')}
      ${isStateless ? nothing : keyForm}
    </div>`;
}
