import { html, nothing, render, svg } from 'lit/html.js';
import { isRunning, timeOf } from '../turn.js';
import { barsOf } from '../turn-bars.js';
import { keepFocus } from './focus.js';
import { count, duration, icon } from './parts.js';

/** @typedef {import('../turn-bars.js').Bar} Bar */
/** @typedef {import('../turn.js').Turn} Turn */

/** What each kind of bar is called. @type {Record<Bar['kind'], string>} */
const NAMES = { queue: 'Queue', model: 'Model', tool: 'Tool', approval: 'Approval' };

/** The length of the whole turn in the picture. */
const WIDTH = 1000;

/** How often the timeline of a turn that runs is drawn, in milliseconds. */
const TICK = 200;

/**
 * Time and tokens of a turn, which open into its timeline. It grows while the turn runs: nothing
 * else of the page is rendered for that.
 */
class TurnTimeline extends HTMLElement {
  /** @type {import('../conversation.js').Conversation | undefined} */
  chat;
  /** @type {Turn | undefined} */
  turn;
  #isOpen = false;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #ticks;

  /** Changes with the turn. */
  set version(/** @type {number} */ _) {
    const runs = this.turn !== undefined && isRunning(this.turn);
    if (runs && this.#ticks !== undefined) return; // drawn soon anyway
    this.#tick(runs);
    this.#draw();
  }

  connectedCallback() {
    this.version = 0;
  }

  disconnectedCallback() {
    this.#tick(false);
  }

  /** @param {boolean} isOn */
  #tick(isOn) {
    clearInterval(this.#ticks);
    this.#ticks = isOn && this.isConnected ? setInterval(() => this.#draw(), TICK) : undefined;
  }

  #draw() {
    const { turn } = this;
    if (turn) keepFocus(() => render(this.#content(turn), this));
  }

  /** @param {Turn} turn */
  #content(turn) {
    const facts = factsOf(turn);
    if (facts.length === 0) return nothing;
    const onToggle = async (/** @type {Event} */ { currentTarget }) => {
      this.#isOpen = /** @type {HTMLDetailsElement} */ (currentTarget).open;
      this.#draw();
      if (!this.#isOpen || isRunning(turn)) return;
      await this.chat?.history.readFacts(); // if they did not come with the events
      this.#draw();
    };
    return html`
      <details class="turn-facts" @toggle=${onToggle}>
        <summary title="Timeline">${facts.map((fact) => html`<span>${fact}</span>`)} ${icon('chevron')}</summary>
        <div class="timeline-body">${this.#isOpen ? timeline(turn) : nothing}</div>
      </details>`;
  }
}

/** Time, tokens and tool calls, as far as they are known. @param {Turn} turn */
function factsOf(turn) {
  const { usage, items } = turn;
  const ms = isRunning(turn) ? (timeOf(turn) ?? 0) + performance.now() - turn.startedAt : turn.ms;
  const tools = items.filter(({ kind }) => kind === 'tool').length;
  const facts = [];
  if (ms !== undefined) facts.push(duration(ms));
  if (usage) facts.push(`${count(usage.total_tokens, 'token')} (${usage.input_tokens} in, ${usage.output_tokens} out)`);
  if (tools > 0) facts.push(count(tools, 'tool call'));
  return facts;
}

/**
 * The parts of a turn as bars, in a table that can be read without them. @param {Turn} turn
 */
function timeline(turn) {
  const { bars, length } = barsOf(turn);
  if (bars.length === 0) return html`<p class="hint">The times of this turn are not known.</p>`;
  const onEvents = (/** @type {Event} */ { currentTarget }) =>
    currentTarget?.dispatchEvent(new CustomEvent('show-events', { bubbles: true, detail: turn }));
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
        <tbody>${bars.map((bar) => row(bar, length, hasUsage))}</tbody>
      </table>
    </div>
    <button type="button" class="small" @click=${onEvents}>${icon('pulse')} Events of this turn</button>`;
}

/** @param {Bar} bar @param {number} total @param {boolean} hasUsage */
function row(bar, total, hasUsage) {
  const { kind, name, start, first, end, usage, state } = bar;
  const isOpen = start !== undefined && end === undefined;
  const isWaiting = isOpen && kind === 'approval'; // for a person, and the turn does not run
  const ms = start === undefined || isWaiting ? undefined : (end ?? total) - start;
  const toFirst = first === undefined || start === undefined ? undefined : first - start;
  const word = isWaiting ? 'waiting' : isOpen ? 'running' : state;
  return html`
    <tr data-kind=${kind} data-state=${state} ?data-open=${isOpen}>
      <th scope="row">${NAMES[kind]} ${name === '' ? nothing : html`<span class="bar-name">${name}</span>`}</th>
      <td class="bar-cell">
        ${start === undefined ? nothing : picture(bar, start, total)}
        <span class="off-screen">${start === undefined ? 'unknown' : duration(start)}</span>
      </td>
      <td>
        ${ms === undefined ? nothing : duration(ms)}
        ${toFirst === undefined || kind !== 'model' ? nothing : html`<small>first token ${duration(toFirst)}</small>`}
        ${word === '' ? nothing : html`<small class="bar-state">${word}</small>`}
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
function picture({ kind, first, end }, start, total) {
  const at = (/** @type {number} */ ms) => Math.max(0, Math.min(WIDTH, (ms / total) * WIDTH));
  const rect = (/** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ name) =>
    svg`<rect class=${name} x=${at(from)} y="0" width=${Math.max(3, at(to) - at(from))} height="10"/>`;
  const last = end ?? total;
  return html`
    <svg class="bar" viewBox=${`0 0 ${WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
      ${first === undefined ? nothing : rect(start, first, 'bar-wait')} ${rect(first ?? start, last, kind === 'model' && first === undefined ? 'bar-wait' : 'bar-run')}
    </svg>`;
}

customElements.define('turn-timeline', TurnTimeline);
