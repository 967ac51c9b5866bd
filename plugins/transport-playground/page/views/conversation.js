import { html, nothing, render } from 'lit/html.js';
import { timeOf } from '../trace.js';
import { answerOf, isRunning, waitingCalls } from '../turn.js';
import { attachButton, thumbnails } from './attachments.js';
import { copyButton, count, duration, icon, pretty, preview } from './parts.js';
import { timeline } from './timeline.js';
import { again, asked, notKept } from './turn-edit.js';
import './markdown-text.js';

/** @typedef {import('../conversation.js').Conversation} Conversation */
/** @typedef {import('../turn.js').ToolItem} ToolItem */
/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../turn.js').TurnItem} TurnItem */
/** @typedef {import('./app.js').PlaygroundApp} View */

/**
 * The rendered turns and their versions: a token renders the running turn only.
 * @type {WeakMap<Turn, [string, unknown]>}
 */
const rendered = new WeakMap();

/**
 * One turn: the message, the tool calls, the answer.
 * @param {Turn} turn @param {Conversation} chat @param {View} view
 */
export function turnView(turn, chat, view) {
  const isLast = turn === chat.turns.at(-1);
  const version = `${turn.version} ${isLast} ${turn === view.edited} ${chat.history.branches.length}`;
  const [before, result] = rendered.get(turn) ?? [];
  if (before === version) return result;
  const next = renderTurn(turn, chat, view, isLast);
  rendered.set(turn, [version, next]);
  return next;
}

/** Why a turn ended early. @type {Record<string, string>} */
const REASONS = {
  cancelled: 'Stopped',
  interrupted: 'Interrupted by another message to this session',
  max_output_tokens: 'Stopped at the length limit',
  max_tool_calls: 'Stopped at the limit of tool calls',
  max_steps: 'Stopped at the limit of steps',
  shutdown: 'Stopped because the server is stopping',
};

/** @param {Turn} turn @param {Conversation} chat @param {View} view @param {boolean} isLast */
function renderTurn(turn, chat, view, isLast) {
  const { status, reason } = turn;
  const running = isRunning(turn);
  const ending = html`<p class="ending">${icon('stop')} ${REASONS[reason] ?? 'Incomplete'}</p>`;
  return html`
    <article class="turn" data-status=${status}>
      ${asked(turn, chat, view)}
      <div class="answer">
        ${turn.items.map((item) => itemView(item, turn, chat, isLast))} ${running ? waiting(turn) : nothing}
        ${isEmpty(turn) ? html`<p class="hint">The answer is empty: the model ended without a text.</p>` : nothing}
        ${status === 'failed' ? failure(turn) : nothing} ${status === 'incomplete' ? ending : nothing}
      </div>
      ${notKept(turn, chat)} ${running ? nothing : footer(turn, chat, again(turn, chat, view, isLast))}
    </article>`;
}

/** @param {TurnItem} item @param {Turn} turn @param {Conversation} chat @param {boolean} isLast */
function itemView(item, turn, chat, isLast) {
  if (item.kind === 'tool')
    return toolCard(item, item.status === 'waiting' && isLast && chat.canDecide ? approvalButtons(item, turn, chat) : nothing);
  if (item.text === '') return nothing;
  if (item.kind === 'text') return html`<markdown-text .text=${item.text}></markdown-text>`;
  return reasoning(item, turn);
}

/**
 * Open while it streams, folded when something follows it. @param {import('../turn.js').TextItem}
 * item @param {Turn} turn
 */
function reasoning(item, turn) {
  const isMoving = isRunning(turn) && item === turn.items.at(-1);
  const ms = timeOf(turn, item.id);
  const took = isMoving || ms === undefined ? nothing : html`<span class="reasoning-time">${duration(ms)}</span>`;
  const mark = isMoving ? html`<span class="spinner"></span>` : icon('chevron');
  return html`
    <details class="reasoning" ?open=${isMoving}>
      <summary>${mark} Reasoning ${took}</summary>
      <p>${item.text}</p>
    </details>`;
}

/** Whether a turn ended well and has nothing to show. @param {Turn} turn */
function isEmpty(turn) {
  const { status, items } = turn;
  const isOver = (/** @type {TurnItem} */ item) =>
    item.kind !== 'tool' || (!item.isOurs && (item.status === 'ok' || item.status === 'failed'));
  return status === 'completed' && answerOf(turn) === '' && items.every(isOver);
}

/** @type {Record<ToolItem['status'], string>} */
const STATES = {
  running: 'running',
  ok: 'done',
  failed: 'failed',
  stopped: 'stopped',
  waiting: 'needs approval',
  approved: 'approved',
  denied: 'denied',
};

/** @param {ToolItem} tool @param {unknown} buttons */
function toolCard(tool, buttons) {
  const { server, name, status, isOurs, output, error, ms } = tool;
  const isHidden = tool.arguments === '' && output === null && status !== 'running';
  const state = isOurs && output === null && status !== 'running' ? 'left to the client' : STATES[status];
  return html`
    <details class="tool" data-status=${status} ?open=${status === 'waiting'}>
      <summary>
        <span class="tool-mark">${status === 'running' ? html`<span class="spinner"></span>` : icon(MARKS[status])}</span>
        <span class="tool-name">
          ${server === '' || server === name ? nothing : html`<span class="tool-server">${server}</span>`}${name || 'An action'}
        </span>
        <span class="tool-preview">${tool.progress || preview(tool.arguments)}</span>
        <span class="tool-state">
          <span class=${status === 'ok' ? 'off-screen' : 'tool-word'}>${state}</span> ${ms === undefined ? nothing : duration(ms)}
        </span>
        ${icon('chevron')}
      </summary>
      <div class="tool-body">
        ${isHidden ? html`<p class="hint">This agent does not show the arguments and results of its tools.</p>` : nothing}
        ${tool.arguments === '' ? nothing : dataBlock('Arguments', pretty(tool.arguments))}
        ${error ? dataBlock('Error', error) : nothing} ${output ? dataBlock('Result', pretty(output)) : nothing}
        ${buttons}
      </div>
    </details>`;
}

/** @param {ToolItem} call @param {Turn} turn @param {Conversation} chat */
function approvalButtons(call, turn, chat) {
  const { server, name } = call;
  const what = name === '' ? 'the action' : server === '' || server === name ? name : `${server}/${name}`;
  const others = waitingCalls(turn).length + turn.decisions.length > 1;
  const onClick = (/** @type {Event} */ { currentTarget }) => {
    const button = /** @type {HTMLButtonElement} */ (currentTarget);
    button.closest('.tool')?.querySelector('summary')?.focus(); // the buttons go
    void chat.decide(turn, call, button.value === 'approve');
  };
  return html`
    <div class="approval">
      <button type="button" class="primary" value="approve" aria-label=${`Approve ${what}`} @click=${onClick}>
        ${icon('check')} Approve
      </button>
      <button type="button" class="plain" value="deny" aria-label=${`Deny ${what}`} @click=${onClick}>Deny</button>
      ${others ? html`<span class="hint">Nothing runs before all calls are decided.</span>` : nothing}
    </div>`;
}

/** @type {Record<ToolItem['status'], import('./parts.js').IconName>} */
const MARKS = {
  running: 'stop',
  ok: 'check',
  failed: 'cross',
  stopped: 'stop',
  waiting: 'warning',
  approved: 'check',
  denied: 'cross',
};

/** @param {string} label @param {string} text */
function dataBlock(label, text) {
  return html`
    <div class="block-head"><span>${label}</span>${copyButton(text, `Copy ${label.toLowerCase()}`)}</div>
    <pre class="data" tabindex="0" role="region" aria-label=${label}>${text}</pre>`;
}

/** Three dots while nothing else moves. @param {Turn} turn */
function waiting({ status, items, queuePosition }) {
  const last = items.at(-1);
  const isSilent = last === undefined || (last.kind === 'tool' && last.status !== 'running');
  if (!isSilent && status !== 'queued') return nothing;
  const place = queuePosition > 0 ? ` (position ${queuePosition})` : '';
  const text = status === 'queued' ? `Waiting for an earlier turn of this session${place}` : '';
  return html`<p class="waiting"><span class="dots"><i></i><i></i><i></i></span> ${text}</p>`;
}

/** @param {Turn} turn */
function failure({ error }) {
  return html`
    <div class="failure" role="alert">
      ${icon('warning')}
      <div><p>${error?.message}</p><code>${error?.code}</code></div>
    </div>`;
}

/** @param {Turn} turn @param {Conversation} chat @param {unknown} buttons */
function footer(turn, chat, buttons) {
  const answer = answerOf(turn);
  return html`
    <footer class="turn-foot">
      ${foldedTimeline(turn, chat)}
      <div class="turn-actions">
        ${answer === '' ? nothing : copyButton(answer, 'Copy answer')} ${buttons}
      </div>
    </footer>`;
}

/** Time and tokens, which open into a timeline. @param {Turn} turn @param {Conversation} chat */
function foldedTimeline(turn, chat) {
  const facts = factsOf(turn);
  if (facts.length === 0) return nothing;
  const onToggle = async (/** @type {Event} */ { currentTarget }) => {
    const { open, lastElementChild } = /** @type {HTMLDetailsElement} */ (currentTarget);
    if (!open || !lastElementChild) return;
    const show = () => render(timeline(turn), /** @type {HTMLElement} */ (lastElementChild));
    show();
    await chat.history.readFacts(); // exact times, and the tokens of each model call
    show();
  };
  return html`
    <details class="turn-facts" @toggle=${onToggle}>
      <summary title="Timeline">${facts.map((fact) => html`<span>${fact}</span>`)} ${icon('chevron')}</summary>
      <div class="timeline-body"></div>
    </details>`;
}

/** Time, tokens and tool calls, as far as they are known. @param {Turn} turn */
function factsOf({ ms, usage, items }) {
  const tools = items.filter(({ kind }) => kind === 'tool').length;
  const facts = [];
  if (ms !== undefined) facts.push(duration(ms));
  if (usage) facts.push(`${count(usage.total_tokens, 'token')} (${usage.input_tokens} in, ${usage.output_tokens} out)`);
  if (tools > 0) facts.push(count(tools, 'tool call'));
  return facts;
}

/** The field for the next message, and how the conversation is kept. @param {View} view */
export function composer(view) {
  const { chat } = view.app;
  const off = chat.agent === '';
  const onInput = (/** @type {Event} */ { target }) => view.setDraft(/** @type {HTMLTextAreaElement} */ (target).value);
  const onSubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    view.submit();
  };
  const stop = html`
    <button type="button" class="round stop" title="Stop (Esc)" aria-label="Stop" @click=${() => view.app.stop()}>
      ${icon('stop')}
    </button>`;
  const send = html`
    <button class="round" title="Send (Enter)" aria-label="Send" ?disabled=${off || (view.draft.trim() === '' && chat.images.length === 0)}>
      ${icon('send')}
    </button>`;
  return html`
    <form class="composer" @submit=${onSubmit}>
      ${thumbnails(view)}
      <textarea id="message" rows="1" autocomplete="off" aria-label="Message" placeholder=${view.app.chats.length > 1 ? 'Message both' : `Message ${chat.agent}`}
        ?disabled=${off} @input=${onInput} @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(event, view)}></textarea>
      <div class="composer-row">
        ${attachButton(view)}
        <button type="button" class="chip" aria-haspopup="dialog"
          @click=${(/** @type {Event} */ event) => view.openPopover(event, '#mode')}>
          <span class="chip-dot" data-on=${!chat.isStateless}></span>
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
  if (sends) view.submit();
  else view.app.stop();
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
