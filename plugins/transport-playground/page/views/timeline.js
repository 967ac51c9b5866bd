import { html, nothing, svg } from 'lit/html.js';
import { barsOf } from '../trace.js';
import { duration, icon } from './parts.js';

/** @typedef {import('../trace.js').Bar} Bar */
/** @typedef {import('../turn.js').Turn} Turn */

/** What each kind of bar is called. @type {Record<Bar['kind'], string>} */
const NAMES = { queue: 'Queue', model: 'Model', tool: 'Tool', approval: 'Approval' };

/** The length of the whole turn in the picture. */
const WIDTH = 1000;

/**
 * The parts of a turn as bars, in a table that can be read without them. @param {Turn} turn
 */
export function timeline(turn) {
  const bars = barsOf(turn);
  if (bars.length === 0) return html`<p class="hint">The times of this turn are not known.</p>`;
  const onEvents = (/** @type {Event} */ { currentTarget }) =>
    currentTarget?.dispatchEvent(new CustomEvent('show-events', { bubbles: true, detail: turn }));
  const total = Math.max(1, ...bars.map(({ start = 0, end = start }) => end));
  const hasUsage = bars.some(({ usage }) => usage);
  return html`
    <div class="table-scroller" tabindex="0" role="region" aria-label="Timeline">
      <table class="timeline">
        <thead>
          <tr>
            <th scope="col">Part</th><th scope="col"><span class="off-screen">Start</span></th><th scope="col">Time</th>
            ${hasUsage ? html`<th scope="col">Tokens</th>` : nothing}
          </tr>
        </thead>
        <tbody>${bars.map((bar) => row(bar, total, hasUsage))}</tbody>
      </table>
    </div>
    <button type="button" class="small" @click=${onEvents}>${icon('pulse')} Events of this turn</button>`;
}

/** @param {Bar} bar @param {number} total @param {boolean} hasUsage */
function row(bar, total, hasUsage) {
  const { kind, name, start, first, end, usage, state } = bar;
  const ms = start === undefined || end === undefined ? undefined : end - start;
  const toFirst = first === undefined || start === undefined ? undefined : first - start;
  const open = kind === 'approval' && start !== undefined && end === undefined ? 'waiting' : state;
  return html`
    <tr data-kind=${kind} data-state=${state}>
      <th scope="row">${NAMES[kind]} ${name === '' ? nothing : html`<span class="bar-name">${name}</span>`}</th>
      <td class="bar-cell">
        ${start === undefined ? nothing : picture(bar, start, total)}
        <span class="off-screen">${start === undefined ? 'unknown' : duration(start)}</span>
      </td>
      <td>
        ${ms === undefined ? nothing : duration(ms)}
        ${toFirst === undefined || kind !== 'model' ? nothing : html`<small>first token ${duration(toFirst)}</small>`}
        ${open === '' ? nothing : html`<small class="bar-state">${open}</small>`}
      </td>
      ${hasUsage ? html`<td>${usage ? tokens(usage) : nothing}</td>` : nothing}
    </tr>`;
}

/** @param {NonNullable<Bar['usage']>} usage */
function tokens({ input_tokens, output_tokens }) {
  return html`${input_tokens.toLocaleString('en')} in, ${output_tokens.toLocaleString('en')} out`;
}

/**
 * A bar from the start to the end; the time to the first token is lighter. @param {Bar} bar @param
 * {number} start @param {number} total
 */
function picture({ first, end }, start, total) {
  const at = (/** @type {number} */ ms) => Math.max(0, Math.min(WIDTH, (ms / total) * WIDTH));
  const rect = (/** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ name) =>
    svg`<rect class=${name} x=${at(from)} y="0" width=${Math.max(3, at(to) - at(from))} height="10"/>`;
  const last = end ?? total;
  return html`
    <svg class="bar" viewBox=${`0 0 ${WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
      ${first === undefined ? nothing : rect(start, first, 'bar-wait')} ${rect(first ?? start, last, 'bar-run')}
    </svg>`;
}
