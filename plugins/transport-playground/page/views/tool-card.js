import { html, nothing } from 'lit/html.js';
import { waitingCalls } from '../turn.js';
import { copyButton, duration, icon, pretty, preview } from './parts.js';

/** @typedef {import('../conversation.js').Conversation} Conversation */
/** @typedef {import('../turn.js').ToolItem} ToolItem */
/** @typedef {import('../turn.js').Turn} Turn */

/** @type {Record<ToolItem['status'], string>} */
const STATES = {
  running: 'running',
  ok: 'done',
  failed: 'failed',
  unknown: 'unknown effect',
  stopped: 'stopped',
  waiting: 'needs approval',
  approved: 'approved',
  denied: 'denied',
};

/** @param {ToolItem} tool @param {unknown} buttons */
export function toolCard(tool, buttons) {
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
export function approvalButtons(call, turn, chat) {
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
  unknown: 'warning',
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
