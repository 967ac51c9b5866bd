import { html, nothing } from 'lit/html.js';
import { answerOf, isRunning } from '../turn.js';
import { copyButton, duration, icon } from './parts.js';
import { approvalButtons, toolCard } from './tool-card.js';
import { again, asked, notKept } from './turn-edit.js';
import './markdown-text.js';
import './timeline.js';

/** @typedef {import('../conversation.js').Conversation} Conversation */
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
      ${notKept(turn, chat)} ${footer(turn, chat, running ? nothing : again(turn, chat, view, isLast))}
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
  const took = isMoving || !item.ms ? nothing : html`<span class="reasoning-time">${duration(item.ms)}</span>`;
  const mark = isMoving ? html`<span class="spinner"></span>` : icon('chevron');
  return html`
    <details class="reasoning" ?open=${isMoving}>
      <summary>${mark} Reasoning ${took}</summary>
      <p dir="auto">${item.text}</p>
    </details>`;
}

/** Whether a turn ended well and has nothing to show. @param {Turn} turn */
function isEmpty(turn) {
  const { status, items } = turn;
  const isOver = (/** @type {TurnItem} */ item) =>
    item.kind !== 'tool' || (!item.isOurs && (item.status === 'ok' || item.status === 'failed'));
  return status === 'completed' && answerOf(turn) === '' && items.every(isOver);
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

/** @param {Turn} turn @param {Conversation} chat @param {unknown} buttons none while it runs */
function footer(turn, chat, buttons) {
  const answer = isRunning(turn) ? '' : answerOf(turn);
  return html`
    <footer class=${isRunning(turn) ? 'turn-foot-running' : 'turn-foot'}>
      <turn-timeline .chat=${chat} .turn=${turn} .version=${turn.version}></turn-timeline>
      <div class="turn-actions">
        ${answer === '' ? nothing : copyButton(answer, 'Copy answer')} ${buttons}
      </div>
    </footer>`;
}
