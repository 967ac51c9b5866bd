import { html, nothing } from 'lit/html.js';
import { BASE } from '../api.js';
import { snippetsOf } from '../snippets.js';
import { copyButton, duration, icon } from './parts.js';

/** @typedef {import('./app.js').PlaygroundApp} View */
/** @typedef {import('../playground.js').LogEntry} LogEntry */

/** What goes over the wire, and the same request as code. @param {View} view */
export function inspector(view) {
  if (view.panel === '') return nothing;
  return html`
    <aside class="inspector" aria-label="Inspector">
      <div class="inspector-head">
        <div class="tabs" role="tablist" aria-label="Inspector" @keydown=${(/** @type {KeyboardEvent} */ event) => onTabKey(event, view)}>
          ${tab(view, 'events', 'Events')} ${tab(view, 'code', 'Code')}
        </div>
        <button class="icon-button" aria-label="Close the inspector" @click=${() => view.showPanel('')}>${icon('close')}</button>
      </div>
      <div class="inspector-body" role="tabpanel" id="panel" aria-labelledby=${`tab-${view.panel}`} tabindex="0">
        ${view.panel === 'events' ? events(view) : code(view)}
      </div>
    </aside>`;
}

/** @param {View} view @param {'events' | 'code'} name @param {string} label */
function tab(view, name, label) {
  const isOn = view.panel === name;
  return html`<button role="tab" id=${`tab-${name}`} aria-selected=${isOn} aria-controls="panel" tabindex=${isOn ? 0 : -1} @click=${() => view.showPanel(name)}>${label}</button>`;
}

/** @param {KeyboardEvent} event @param {View} view */
function onTabKey(event, view) {
  if (event.key !== 'ArrowRight' && event.key !== 'ArrowLeft') return;
  event.preventDefault();
  view.showPanel(view.panel === 'events' ? 'code' : 'events');
  void view.updateComplete.then(() => document.getElementById(`tab-${view.panel}`)?.focus());
}

/** @param {View} view */
function events(view) {
  const { log } = view.app;
  const shown = view.showsDeltas ? log : log.filter(({ label }) => !label.endsWith('.delta'));
  return html`
    <div class="panel-bar">
      <label class="switch"><input type="checkbox" .checked=${view.showsDeltas} @change=${() => view.toggleDeltas()}> Show deltas</label>
      <span class="spread"></span>
      ${log.length > 0 ? html`${copyButton(JSON.stringify(log, null, 2), 'Copy all events')}<button class="small" @click=${() => view.app.clearLog()}>Clear</button>` : nothing}
    </div>
    ${
      shown.length === 0
        ? html`<p class="empty-panel">Requests and events show here as they happen, with their sequence numbers.</p>`
        : html`<ol class="log">${shown.map(logRow)}</ol>`
    }`;
}

/** @type {Record<LogEntry['direction'], [string, string]>} */
const ARROWS = { in: ['←', 'received'], out: ['→', 'sent'], http: ['⇄', 'request'] };

/** @param {LogEntry} entry */
function isBad({ direction, label, note }) {
  return direction === 'http' ? !note.startsWith('2') : label === 'error' || label.endsWith('failed');
}

/** @param {LogEntry} entry */
function logRow(entry) {
  const [arrow, word] = ARROWS[entry.direction];
  /** @param {Event} event */
  const onToggle = ({ target }) => {
    const details = /** @type {HTMLDetailsElement} */ (target);
    const pre = /** @type {HTMLElement} */ (details.querySelector('pre'));
    if (details.open && pre.textContent === '') pre.textContent = JSON.stringify(entry.data, null, 2);
  };
  return html`
    <li>
      <details class="event" data-direction=${entry.direction} data-bad=${isBad(entry)} @toggle=${onToggle}>
        <summary><span class="arrow" title=${word}>${arrow}<span class="off-screen">${word}</span></span><span class="event-label">${entry.label}</span><span class="event-note">${entry.note}</span><span class="event-time">${duration(entry.at)}</span></summary>
        <pre class="data" tabindex="0" role="region" aria-label="Event as JSON"></pre>
      </details>
    </li>`;
}

/** @param {View} view */
function code(view) {
  const { app } = view;
  if (app.agent === '') return html`<p class="empty-panel">Pick an agent first.</p>`;
  const snippets = snippetsOf({ ...app.requestOf(view.draft), base: BASE.href, token: app.settings.token });
  const shown = snippets.find(({ id }) => id === view.snippet) ?? snippets[0];
  return html`
    <p class="panel-intro">The same request from a program${app.settings.token ? html`. Put your token into the variable <code>PLUGBOARD_TOKEN</code>.` : '.'}</p>
    <div class="segments" role="group" aria-label="Language">
      ${snippets.map(({ id, label }) => html`<button aria-pressed=${shown?.id === id} @click=${() => view.showSnippet(id)}>${label}</button>`)}
    </div>
    <div class="code-frame">
      <div class="code-bar"><span>${shown?.label}</span>${copyButton(shown?.text ?? '', `Copy as ${shown?.label}`)}</div>
      <pre class="snippet" tabindex="0" role="region" aria-label=${`${shown?.label}`}>${shown?.text}</pre>
    </div>`;
}
