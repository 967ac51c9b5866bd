import { html, nothing } from 'lit/html.js';
import { answerOf, isRunning } from '../turn.js';
import './markdown-text.js';
import { copyButton, count, duration, icon, pretty, preview } from './parts.js';

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../turn.js').ToolItem} ToolItem */
/** @typedef {import('./app.js').PlaygroundApp} View */

/** What an ending short of the whole answer is called. */
/** @type {Record<string, string>} */
const REASONS = {
  cancelled: 'Stopped',
  interrupted: 'Interrupted by another message to this session',
  max_output_tokens: 'The answer reached its length limit',
  max_tool_calls: 'The turn reached its limit of tool calls',
  max_steps: 'The turn reached its limit of steps',
  shutdown: 'The server is stopping',
};

/**
 * One turn: what was asked, what the agent did, what it said.
 * @param {Turn} turn @param {import('../playground.js').Playground} app @param {boolean} isLast
 */
export function turnView(turn, app, isLast) {
  const version = `${turn.version} ${isLast}`;
  const before = drawn.get(turn);
  if (before?.version === version) return before.result;
  const result = drawTurn(turn, app, isLast);
  drawn.set(turn, { version, result });
  return result;
}

/** Turns as they were drawn last: a long conversation costs no more than its last turn. @type {WeakMap<Turn, { version: string, result: unknown }>} */
const drawn = new WeakMap();

/** @param {Turn} turn @param {import('../playground.js').Playground} app @param {boolean} isLast */
function drawTurn(turn, app, isLast) {
  const running = isRunning(turn);
  return html`
      <article class="turn" aria-label=${`Turn: ${turn.input.slice(0, 80)}`} data-status=${turn.status}>
        ${turn.input === '' ? nothing : html`<div class="asked"><p>${turn.input}</p></div>`}
        <div class="answer">
          ${turn.items.map(itemView)}
          ${running ? waiting(turn) : nothing}
          ${turn.status === 'failed' ? failure(turn) : nothing}
          ${turn.status === 'incomplete' ? html`<p class="ending">${icon('stop')} ${REASONS[turn.reason] ?? 'Not complete'}</p>` : nothing}
        </div>
        ${running ? nothing : footer(turn, app, isLast)}
      </article>`;
}

/** @param {import('../turn.js').TurnItem} item */
function itemView(item) {
  if (item.kind === 'tool') return toolCard(item);
  if (item.kind === 'text') return item.text === '' ? nothing : html`<markdown-text .text=${item.text}></markdown-text>`;
  if (item.text === '') return nothing;
  return html`<details class="reasoning"><summary>${icon('chevron')} Reasoning</summary><p>${item.text}</p></details>`;
}

/** @param {ToolItem} tool */
function toolCard(tool) {
  const isHidden = tool.arguments === '' && tool.output === null && tool.status !== 'running';
  const state = tool.isOurs && tool.output === null && tool.status !== 'running' ? 'waits for the caller' : STATES[tool.status];
  return html`
    <details class="tool" data-status=${tool.status}>
      <summary>
        <span class="tool-mark">${mark(tool)}</span>
        <span class="tool-name">${tool.server !== '' && tool.server !== tool.name ? html`<span class="tool-server">${tool.server}</span>` : nothing}${tool.name}</span>
        <span class="tool-preview">${tool.progress || preview(tool.arguments)}</span>
        <span class="tool-state"><span class=${tool.status === 'ok' ? 'off-screen' : 'tool-word'}>${state}</span>${tool.ms === undefined ? nothing : html`<span class="tool-time">${duration(tool.ms)}</span>`}</span>
        ${icon('chevron')}
      </summary>
      <div class="tool-body">
        ${isHidden ? html`<p class="hint">The agent does not show what goes into this tool and what comes out.</p>` : nothing}
        ${tool.arguments === '' ? nothing : block('Arguments', pretty(tool.arguments))}
        ${tool.error === null ? nothing : block('Error', tool.error)}
        ${tool.output === null || tool.output === '' ? nothing : block('Result', pretty(tool.output))}
      </div>
    </details>`;
}

/** @type {Record<ToolItem['status'], string>} */
const STATES = { running: 'running', ok: 'done', failed: 'failed', stopped: 'stopped' };

/** @param {ToolItem} tool */
function mark({ status }) {
  if (status === 'running') return html`<span class="spinner"></span>`;
  return icon(status === 'ok' ? 'check' : status === 'failed' ? 'cross' : 'stop');
}

/** @param {string} label @param {string} text */
function block(label, text) {
  return html`
    <div class="block-head"><span>${label}</span>${copyButton(text, `Copy ${label.toLowerCase()}`)}</div>
    <pre class="data" tabindex="0" role="region" aria-label=${label}>${text}</pre>`;
}

/** @param {Turn} turn */
function waiting(turn) {
  const last = turn.items.at(-1);
  const isSilent = last === undefined || (last.kind === 'tool' && last.status !== 'running');
  if (turn.status === 'queued') {
    const place = turn.queuePosition > 0 ? ` (${turn.queuePosition} before it)` : '';
    return html`<p class="waiting"><span class="dots"><i></i><i></i><i></i></span> Waits for an earlier turn of this session${place}</p>`;
  }
  return isSilent
    ? html`<p class="waiting"><span class="dots"><i></i><i></i><i></i></span><span class="off-screen">The agent is working</span></p>`
    : nothing;
}

/** @param {Turn} turn */
function failure({ error }) {
  return html`
    <div class="failure" role="alert">
      ${icon('warning')}
      <div><p>${error?.message}</p>${error?.code ? html`<code>${error.code}</code>` : nothing}</div>
    </div>`;
}

/** @param {Turn} turn @param {import('../playground.js').Playground} app @param {boolean} isLast */
function footer(turn, app, isLast) {
  const answer = answerOf(turn);
  const tools = turn.items.filter(({ kind }) => kind === 'tool').length;
  const { usage } = turn;
  const facts = [
    ...(turn.ms === undefined ? [] : [html`<span>${duration(turn.ms)}</span>`]),
    ...(usage
      ? [
          html`<span>${count(usage.total_tokens, 'token')} (${usage.input_tokens.toLocaleString('en')} in, ${usage.output_tokens.toLocaleString('en')} out)</span>`,
        ]
      : []),
    ...(tools > 0 ? [html`<span>${count(tools, 'tool call')}</span>`] : []),
  ];
  return html`
    <footer class="turn-foot">
      <div class="turn-facts">${facts}</div>
      <div class="turn-actions">
        ${answer === '' ? nothing : copyButton(answer, 'Copy answer')}
        ${isLast && turn.input !== '' ? html`<button class="small" ?disabled=${app.isRunning} title="Send this message again" @click=${() => app.retry()}>${icon('retry')}<span>Retry</span></button>` : nothing}
      </div>
    </footer>`;
}

/** Where a message is written, and how it is kept. @param {View} view */
export function composer(view) {
  const { app } = view;
  const cannot = app.agent === '';
  return html`
    <form class="composer" @submit=${(/** @type {Event} */ event) => submit(event, view)}>
      <label class="off-screen" for="message">Message to ${app.agent || 'the agent'}</label>
      <textarea id="message" rows="1" autocomplete="off" placeholder=${cannot ? 'No agent to talk to yet' : `Message ${app.agent}`}
        ?disabled=${cannot}
        @input=${(/** @type {InputEvent} */ event) => view.setDraft(/** @type {HTMLTextAreaElement} */ (event.target).value)}
        @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, view)}></textarea>
      <div class="composer-row">
        <button type="button" class="chip" id="mode-button" aria-haspopup="dialog" @click=${(/** @type {Event} */ event) => view.openPopover(event, '#mode')}>
          <span class="chip-dot" data-on=${!app.isStateless}></span>
          ${app.isStateless ? 'Stateless' : html`Session <code>${app.sessionKey}</code>`}
          ${icon('chevron')}
        </button>
        <span class="spread"></span>
        <span class="keys" aria-hidden="true">${app.isRunning ? 'Esc stops' : 'Shift + Enter for a new line'}</span>
        ${
          app.isRunning
            ? html`<button type="button" class="round stop" title="Stop (Esc)" aria-label="Stop" @click=${() => app.stop()}>${icon('stop')}</button>`
            : html`<button type="submit" class="round" title="Send (Enter)" aria-label="Send" ?disabled=${cannot || view.draft.trim() === ''}>${icon('send')}</button>`
        }
      </div>
    </form>
    ${modePopover(view)}`;
}

/** @param {View} view */
function modePopover({ app }) {
  const change = (/** @type {boolean} */ isStateless, /** @type {string | undefined} */ key = undefined) =>
    app.setMode(isStateless, key);
  return html`
    <div id="mode" class="popover" popover role="dialog" aria-label="How the conversation is kept">
      <fieldset>
        <legend class="off-screen">How the conversation is kept</legend>
        <label class="option">
          <input type="radio" name="mode" .checked=${!app.isStateless} ?disabled=${app.isRunning} @change=${() => change(false)}>
          <span><b>Session</b><small>The server keeps the conversation. Each request carries only the new message and the key.</small></span>
        </label>
        <label class="option">
          <input type="radio" name="mode" .checked=${app.isStateless} ?disabled=${app.isRunning} @change=${() => change(true)}>
          <span><b>Stateless</b><small>The server keeps nothing. Each request carries the whole conversation.</small></span>
        </label>
      </fieldset>
      ${
        app.isStateless
          ? nothing
          : html`
          <form class="key-form" @submit=${(/** @type {SubmitEvent} */ event) => {
            event.preventDefault();
            const { value } = /** @type {HTMLInputElement} */ (
              /** @type {HTMLFormElement} */ (event.target).elements.namedItem('key')
            );
            change(false, value.trim());
            /** @type {HTMLElement} */ (document.getElementById('mode')).hidePopover();
          }}>
            <label for="session-key">Session key</label>
            <div class="field"><input id="session-key" name="key" maxlength="512" autocomplete="off" spellcheck="false" .value=${app.sessionKey} ?disabled=${app.isRunning}><button class="plain">Use</button></div>
            <small>Send it as <code>session_id</code> to go on with this session from anywhere.</small>
          </form>`
      }
    </div>`;
}

/** @param {Event} event @param {View} view */
function submit(event, view) {
  event.preventDefault();
  view.submit();
}

/** Enter sends, Shift+Enter makes a line, Esc stops. @param {KeyboardEvent} event @param {View} view */
function onKey(event, view) {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    view.submit();
  } else if (event.key === 'Escape' && view.app.isRunning) {
    event.preventDefault();
    view.app.stop();
  }
}
