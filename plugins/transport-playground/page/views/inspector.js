import { repeat } from 'lit/directives/repeat.js';
import { html, nothing } from 'lit/html.js';
import { BASE } from '../api.js';
import { LANGUAGES, requestOf, snippetOf } from '../snippets.js';
import { copyButton, duration, iconButton } from './parts.js';
import { wrapButton } from './wrap.js';

/** @typedef {import('./app.js').PlaygroundApp} View */
/** @typedef {import('../api.js').LogEntry} LogEntry */

/** Rows of the event log that are shown at once. */
const MAX_ROWS = 500;

/** The event log follows the newest while its end is at most this many pixels away. */
const NEAR_END = 40;

/** Labels of events that come with each piece of a text. */
const DELTAS = /\.delta$|^svc:nested text$/;

/** Whether the reader of the event log is at its end. */
let isFollowing = true;

/** Shows the newest event, unless the reader has scrolled up. @param {View} view */
export function followNewest(view) {
  if (view.panel === 'events' && isFollowing) view.find('#panel')?.scrollTo({ top: 1e9 });
}

/** @param {Event} event @param {View} view */
function onScroll({ currentTarget }, view) {
  const { scrollHeight, scrollTop, clientHeight } = /** @type {HTMLElement} */ (currentTarget);
  isFollowing = view.panel !== 'events' || scrollHeight - scrollTop - clientHeight < NEAR_END;
}

/**
 * The panel beside the conversation: the events on the wire, or the current request as code. @param
 * {View} view
 */
export function inspector(view) {
  if (view.panel !== 'events') isFollowing = true;
  if (view.panel === '') return nothing;
  return html`
    <aside class="inspector" aria-label="Inspector">
      <div class="inspector-head">
        <div class="tabs" role="tablist" aria-label="Inspector"
          @keydown=${(/** @type {KeyboardEvent} */ event) => onTabKey(event, view)}>
          ${tab(view, 'events', 'Events')} ${tab(view, 'code', 'Code')}
        </div>
        ${iconButton('close', 'Close the inspector', () => view.showPanel(''))}
      </div>
      <div class="inspector-body" role="tabpanel" id="panel" aria-labelledby=${`tab-${view.panel}`} tabindex="0"
        @scroll=${(/** @type {Event} */ event) => onScroll(event, view)}>
        ${view.panel === 'events' ? events(view) : code(view)}
      </div>
    </aside>`;
}

/** @param {View} view @param {'events' | 'code'} name @param {string} label */
function tab(view, name, label) {
  const isOn = view.panel === name;
  return html`
    <button role="tab" id=${`tab-${name}`} aria-selected=${isOn} aria-controls="panel" tabindex=${isOn ? 0 : -1}
      @click=${() => view.showPanel(name)}>${label}</button>`;
}

/** The arrow keys change the tab. @param {KeyboardEvent} event @param {View} view */
function onTabKey(event, view) {
  if (event.key !== 'ArrowRight' && event.key !== 'ArrowLeft') return;
  event.preventDefault();
  view.showPanel(view.panel === 'events' ? 'code' : 'events');
  void view.updateComplete.then(() => document.getElementById(`tab-${view.panel}`)?.focus());
}

/** @param {View} view */
function events(view) {
  const { app, showsDeltas } = view;
  const { entries } = app.log;
  const turn = view.eventsOf && app.chat.turns.includes(view.eventsOf) ? view.eventsOf : undefined;
  const shown = entries.filter(
    ({ label, run }) => (showsDeltas || !DELTAS.test(label)) && (!turn || (run && turn.responses.includes(run.responseId))),
  );
  const rows = shown.slice(-MAX_ROWS);
  return html`
    <div class="panel-bar">
      <label class="switch">
        <input type="checkbox" .checked=${showsDeltas} @change=${() => view.toggleDeltas()}> Show deltas
      </label>
      ${turnPicker(view, turn)}
      <span class="spread"></span>
      <button class="small" @click=${() => app.log.clear()}>Clear</button>
    </div>
    ${shown.length === 0 ? html`<p class="empty-panel">Requests and events show here as they happen.</p>` : nothing}
    ${rows.length < shown.length ? html`<p class="hint">The newest ${rows.length} of ${shown.length}.</p>` : nothing}
    <ol class="log">${repeat(rows, (entry) => entry, logRow)}</ol>`;
}

/** @param {View} view @param {import('../turn.js').Turn | undefined} turn that is chosen */
function turnPicker(view, turn) {
  const { turns } = view.app.chat;
  const onChange = (/** @type {Event} */ { target }) => {
    const { value } = /** @type {HTMLSelectElement} */ (target);
    view.showEventsOf(value === '' ? undefined : turns[Number(value)]);
  };
  return html`
    <select class="turn-picker" aria-label="Events of" @change=${onChange}>
      <option value="" .selected=${!turn}>All turns</option>
      ${turns.map((one, at) => html`<option value=${at} .selected=${one === turn}>${at + 1}. ${one.input.slice(0, 40)}</option>`)}
    </select>`;
}

/** @type {Record<LogEntry['direction'], [string, string]>} */
const ARROWS = { in: ['←', 'received'], out: ['→', 'sent'], http: ['⇄', 'request'] };

/** @param {LogEntry} entry */
function logRow({ direction, label, note, at, data, count }) {
  const [arrow, word] = ARROWS[direction];
  const isBad = direction === 'http' ? !note.startsWith('2') : /^error$|failed$/.test(label);
  const onToggle = (/** @type {Event} */ { target }) => {
    const { open, lastElementChild } = /** @type {HTMLDetailsElement} */ (target);
    if (lastElementChild) lastElementChild.textContent = open ? JSON.stringify(data, null, 2) : '';
  };
  return html`
    <li>
      <details class="event" data-direction=${direction} data-bad=${isBad} @toggle=${onToggle}>
        <summary>
          <span class="arrow" title=${word}>${arrow}<span class="off-screen">${word}</span></span>
          <span class="event-label">${label}</span>
          <span class="event-note">${note}${count > 1 ? ` ×${count}` : nothing}</span>
          <span class="event-time">${duration(at)}</span>
        </summary>
        <pre class="data" tabindex="0" role="region" aria-label="Event as JSON"></pre>
      </details>
    </li>`;
}

/** The one button that wraps the snippet. */
const WRAP = wrapButton();

/** @param {View} view */
function code(view) {
  const { app } = view;
  const { token } = app.server.settings;
  const { language, stream } = view.code;
  const isLive = language === 'wscat';
  const surface = app.server.hasResponses ? view.code.surface : 'chat';
  const text = snippetOf(language, { ...requestOf(app.chat), base: BASE.href, token, surface, stream });
  const { label = '' } = LANGUAGES.find(({ id }) => id === language) ?? {};
  const hint = token ? html`. Set the variable <code>PLUGBOARD_TOKEN</code> to your token.` : '.';
  const segment = (/** @type {boolean} */ isOn, /** @type {string} */ name, /** @type {Partial<View['code']>} */ change) =>
    html`<button aria-pressed=${isOn} @click=${() => view.showCode(change)}>${name}</button>`;
  const surfaces = html`
    <div class="segments" role="group" aria-label="API">
      ${segment(surface === 'chat', 'Chat completions', { surface: 'chat' })}
      ${segment(surface === 'responses', 'Responses', { surface: 'responses' })}
    </div>`;
  const streaming = html`
    <label class="switch">
      <input type="checkbox" .checked=${stream} @change=${() => view.showCode({ stream: !stream })}> Streaming
    </label>`;
  return html`
    <p class="panel-intro">The same request from a program${hint} ${app.chat.turns.at(-1)?.images.length ? 'Images are left out.' : ''}</p>
    <div class="segments" role="group" aria-label="Language">
      ${LANGUAGES.map((one) => segment(one.id === language, one.label, { language: one.id }))}
    </div>
    <div class="panel-bar">
      ${app.server.hasResponses && !isLive ? surfaces : nothing} ${isLive ? nothing : streaming}
    </div>
    <div class="code-frame">
      <div class="code-bar"><span>${label}</span>${WRAP}${copyButton(text, `Copy as ${label}`)}</div>
      <pre class="snippet" tabindex="0" role="region" aria-label=${label}>${text}</pre>
    </div>`;
}
