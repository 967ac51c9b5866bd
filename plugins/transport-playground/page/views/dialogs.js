import { html, nothing } from 'lit/html.js';
import { deleteSession, renameSession } from '../session-actions.js';
import { sessionTitle } from '../sessions.js';
import { copyButton } from './parts.js';

/** @typedef {import('./app.js').PlaygroundApp} View */

/** @param {View} view */
export function dialogs(view) {
  const name = view.target ? sessionTitle(view.target) : '';
  return html`
    ${tokenDialog(view)}
    ${dialog(view, {
      id: 'rename',
      title: 'Rename session',
      body: html`
        <label for="name">Name</label>
        <input id="name" name="value" dir="auto" maxlength="200" required autocomplete="off" .value=${name}>`,
      button: 'Rename',
      onSubmit: (value) => rename(view, value),
    })}
    ${dialog(view, {
      id: 'delete',
      title: 'Delete this session?',
      body: html`<p><bdi><b>${name}</b></bdi> is deleted from the server with all its messages. A running turn is stopped.</p>`,
      button: 'Delete',
      onSubmit: () => remove(view),
    })}`;
}

/** The command that prints a token: every server has the project `default`. */
const CREATE = 'npx plugboard token create --project default --name playground';

/** The command, which is broken between its options only. */
function command() {
  const parts = CREATE.split(/ (?=--)/).map((part) => html`<span>${part}</span> `);
  return html`
    <p class="command"><span>This command prints one:</span><code>${parts}</code>${copyButton(CREATE, 'Copy the command')}</p>`;
}

/** @param {View} view */
function tokenDialog(view) {
  const { api, server } = view.app;
  const isRefused = server.access === 'refused';
  const [state, tone] = isRefused
    ? ['The server refused this token: it is wrong, expired or revoked.', 'bad']
    : server.access === 'ok'
      ? ['The server accepted this token.', 'good']
      : ['', 'quiet'];
  const onShow = (/** @type {Event} */ { target }) => {
    const isShown = /** @type {HTMLInputElement} */ (target).checked;
    /** @type {HTMLInputElement} */ (view.find('#token')).type = isShown ? 'text' : 'password';
  };
  const forget = html`<button type="button" class="plain danger" @click=${() => enterToken(view, '')}>Forget token</button>`;
  return dialog(view, {
    id: 'token',
    title: 'API token',
    body: html`
      <p>This server requires a token. It stays in this browser tab and is sent to this server only.</p>
      <label for="token">Token</label>
      <input id="token" name="value" type="password" autocomplete="off" required placeholder="svcp_…"
        aria-describedby="token-state" aria-invalid=${isRefused}>
      <label class="switch"><input type="checkbox" @change=${onShow}> Show the token</label>
      <p id="token-state" class="field-state" role="status" data-tone=${tone}>${state}</p>
      ${server.access === 'ok' ? nothing : command()}`,
    extra: api.token && forget,
    button: 'Use token',
    onSubmit: (value) => enterToken(view, value),
  });
}

/**
 * A token without what was copied with it: a header's name, quotes, spaces. @param {string} text
 */
function bareToken(text) {
  return text
    .replaceAll(/["'`]/g, '')
    .replace(/^\s*(?:authorization:\s*)?bearer\s/i, '')
    .replaceAll(/\s/g, '');
}

/** @param {View} view @param {string} token */
async function enterToken(view, token) {
  await view.app.setToken(bareToken(token));
  const field = /** @type {HTMLInputElement} */ (view.find('#token'));
  if (view.app.server.access === 'refused') return field.focus(); // what was typed can be mended
  field.value = '';
  if (token !== '') closeDialogs(view);
  view.focusMessage();
}

/** @param {View} view @param {string} title */
function rename(view, title) {
  closeDialogs(view);
  if (view.target && title !== '') void renameSession(view.app, view.target, title);
}

/** @param {View} view */
function remove(view) {
  closeDialogs(view);
  if (view.target) void deleteSession(view.app, view.target);
  view.focusMessage();
}

/** @param {View} view @param {'token' | 'rename' | 'delete'} name */
export function openDialog(view, name) {
  view.find('#session-menu')?.hidePopover();
  view.toggleSidebar(false);
  view.requestUpdate();
  void view.updateComplete.then(() => {
    const dialog = /** @type {HTMLDialogElement} */ (view.find(`#${name}-dialog`));
    const field = dialog.querySelector('input');
    if (name === 'token' && field && view.app.server.access === 'refused') field.value ||= view.app.api.token; // to be mended
    if (!dialog.open) dialog.showModal();
    field?.select();
  });
}

/** @param {View} view */
function closeDialogs(view) {
  for (const dialog of view.querySelectorAll('dialog')) dialog.close();
}

/**
 * @typedef {object} DialogParts
 * @property {string} id
 * @property {string} title
 * @property {unknown} body
 * @property {unknown} [extra] a button at the left
 * @property {string} button the label of the one that submits
 * @property {(value: string) => unknown} onSubmit receives the text of the dialog's input
 */

/** @param {View} view @param {DialogParts} parts */
function dialog(view, { id, title, body, extra, button, onSubmit }) {
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    onSubmit(form.querySelector('input')?.value.trim() ?? '');
  };
  return html`
    <dialog id=${`${id}-dialog`} aria-labelledby=${`${id}-title`}>
      <form @submit=${submit}>
        <h2 id=${`${id}-title`}>${title}</h2>
        ${body}
        <div class="dialog-buttons">
          ${extra}<span class="spread"></span>
          <button type="button" class="plain" @click=${() => closeDialogs(view)}>Cancel</button>
          <button class="primary" data-is=${id}>${button}</button>
        </div>
      </form>
    </dialog>`;
}
