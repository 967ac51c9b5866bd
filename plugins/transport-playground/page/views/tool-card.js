import { html, nothing } from 'lit/html.js';
import { activityOf } from '../nested-turns.js';
import { waitingCalls } from '../turn.js';
import { nameOf } from '../turn-items.js';
import { copyButton, count, duration, icon, pretty, preview } from './parts.js';
import './markdown-text.js';

/** @typedef {import('../conversation.js').Conversation} Conversation */
/** @typedef {import('../nested-turns.js').NestedStep} NestedStep */
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

/**
 * @param {ToolItem} tool @param {unknown} buttons
 * @param {string} [hint] where nothing else is known
 * @returns {import('lit/html.js').TemplateResult}
 */
export function toolCard(tool, buttons, hint = 'This agent does not show the arguments and results of its tools.') {
  const { server, name, status, isOurs, output, error, ms, nested } = tool;
  const isHidden = tool.arguments === '' && output === null && status !== 'running' && !nested;
  const state = isOurs && output === null && status !== 'running' ? 'left to the client' : STATES[status];
  return html`
    <details class="tool" data-status=${status} ?open=${status === 'waiting' && !(isHidden && buttons === nothing)}>
      <summary>
        <span class="tool-mark">${status === 'running' ? html`<span class="spinner"></span>` : icon(MARKS[status])}</span>
        <span class="tool-name">
          ${server === '' || server === name ? nothing : html`<span class="tool-server">${server}</span>`}${name || 'An action'}
        </span>
        <span class="tool-preview">${(status === 'running' && activityOf(tool)) || tool.progress || preview(tool.arguments)}</span>
        <span class="tool-state">
          <span class=${status === 'ok' ? 'off-screen' : 'tool-word'}>${state}</span> ${ms === undefined ? nothing : duration(ms)}
        </span>
        ${icon('chevron')}
      </summary>
      <div class="tool-body">
        ${isHidden ? html`<p class="hint">${hint}</p>` : nothing}
        ${tool.arguments === '' ? nothing : dataBlock('Arguments', pretty(tool.arguments))}
        ${nested ? nestedTurn(nested, output) : nothing}
        ${error ? dataBlock('Error', error) : nothing} ${output ? dataBlock('Result', pretty(output)) : nothing}
        ${buttons}
      </div>
    </details>`;
}

/**
 * The steps of the agent that a tool asks. Its last text is the result.
 * @param {NonNullable<ToolItem['nested']>} nested @param {string | null} output of the tool
 */
function nestedTurn({ agent, steps, usage, end }, output) {
  const facts = [usage ? count(usage.total_tokens, 'token') : '', end].filter((fact) => fact !== '');
  return html`
    <div class="block-head"><span>Steps of ${agent}</span><span class="nested-facts">${facts.join(', ')}</span></div>
    <ol class="nested" aria-label=${`Steps of ${agent}`}>${steps.map((step, at) => nestedStep(step, at + 1, output))}</ol>`;
}

/** @param {NestedStep} step @param {number} number @param {string | null} output */
function nestedStep({ connection, ms, items }, number, output) {
  const shown = items.filter((item) => item.kind === 'tool' || item.text.trim() !== output?.trim());
  return html`
    <li>
      <p class="nested-head">Step ${number} <span>${connection} ${ms === undefined ? nothing : duration(ms)}</span></p>
      ${shown.map((item) => (item.kind === 'tool' ? toolCard(item, nothing, 'Of this call, only the time is known.') : html`<markdown-text .text=${item.text}></markdown-text>`))}
    </li>`;
}

/** @param {ToolItem} call @param {Turn} turn @param {Conversation} chat */
export function approvalButtons(call, turn, chat) {
  const what = nameOf(call) || 'the action';
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
