import { html, nothing, render } from 'lit/html.js';
import { argumentsIn, cardPath, skeletonOf, toolPath } from '../agent-cards.js';
import { keepFocus } from './focus.js';
import { count, duration, icon, iconButton, pretty } from './parts.js';
import { trialFields } from './trial-fields.js';

/** @typedef {import('./app.js').PlaygroundApp} View */
/** @typedef {import('../api.js').ApiError} ApiError */
/** @typedef {import('../trial.js').Chat} Chat */
/** @typedef {import('../agent-cards.js').AgentCard} AgentCard */
/** @typedef {import('../agent-cards.js').CardTool} CardTool */
/** @typedef {import('../agent-cards.js').ToolResult} ToolResult */

/**
 * What the card knows of one tool.
 * @typedef {object} ToolState
 * @property {CardTool} [tool] with its description and schema, when they are read
 * @property {string} [error] why they are not
 * @property {string} [text] the arguments, as typed
 * @property {string} [problem] why it was not run
 * @property {boolean} [asks] whether the person must approve the call first
 * @property {AbortController} [running]
 * @property {ToolResult} [result]
 */

/** From so many tools on, they can be filtered. */
const MANY = 8;

/** Characters of a text that the page shows; the rest is said to be missing. */
const MAX_SHOWN = 200_000;

/**
 * The card of an agent, in a dialog: what it is made of, its tools to be run by hand, and a prompt
 * and parameters to try. It stays in the page, so that nothing typed is lost when it is closed.
 */
class AgentCardDialog extends HTMLElement {
  /** @type {View | undefined} */
  #view;
  /** The conversation that something is tried in. @type {Chat | undefined} */
  #chat;
  agent = '';
  /** @type {AgentCard | undefined} */
  #card;
  #error = '';
  #filter = '';
  /** By the addresses of the tools. @type {Map<string, ToolState>} */
  #tools = new Map();

  /** @param {View} view @param {Chat} chat */
  async open(view, chat) {
    this.#view = view;
    this.#chat = chat;
    const { agent } = chat;
    if (agent !== this.agent) this.#filter = '';
    this.agent = agent;
    this.#card = undefined;
    this.#error = '';
    this.#render();
    /** @type {HTMLDialogElement} */ (this.firstElementChild).showModal();
    await this.#read(view, agent);
  }

  /** @param {View} view @param {string} agent */
  async #read({ app }, agent) {
    if (!app.server.hasAgentCards)
      this.#error = 'The server does not use the transport `agents`, which tells more about this agent.';
    else {
      try {
        const card = await app.api.get(cardPath(agent));
        if (agent !== this.agent) return;
        this.#card = card;
      } catch (error) {
        this.#error = `The agent's card cannot be read. ${/** @type {Error} */ (error).message}`;
      }
    }
    this.#render();
  }

  #render() {
    const view = this.#view;
    const chat = this.#chat;
    if (!view || !chat) return;
    const changed = () => {
      this.#render();
      view.requestUpdate();
    };
    const close = () => /** @type {HTMLDialogElement} */ (this.firstElementChild).close();
    keepFocus(() =>
      render(
        html`
        <dialog class="agent-card" aria-labelledby="card-title">
          <div class="card-head"><h2 id="card-title">${this.agent}</h2>${iconButton('close', 'Close the card', close)}</div>
          <div class="card-body">
            ${this.#error === '' ? nothing : html`<p class="hint" role="status">${this.#error}</p>`}
            ${this.#card ? this.#about(this.#card) : nothing}
            ${this.#error === '' && !this.#card ? html`<div class="skeleton"><i></i><i></i></div>` : nothing}
            <section><h3>Try in this session</h3>${trialFields(chat, this.#card?.settings, changed)}</section>
            ${this.#card ? this.#toolList(this.#card) : nothing}
          </div>
        </dialog>`,
        this,
      ),
    );
  }

  /** @param {AgentCard} card */
  #about({ description, models, settings }) {
    const params = settings && Object.keys(settings.params).length > 0;
    return html`
      ${description ? html`<p class="card-description" dir="auto" tabindex="0">${description}</p>` : nothing}
      <p class="card-models"><span class="hint">${models.length === 1 ? 'Model' : 'Models, in this order'}</span>
        ${models.map((name) => html`<code>${name}</code>`)}</p>
      ${settings ? folded('Prompt', settings.system ?? 'This agent has no prompt.') : nothing}
      ${params ? folded('Parameters', JSON.stringify(settings.params, null, 2)) : nothing}`;
  }

  /** @param {AgentCard} card */
  #toolList({ tools, tool_visibility, settings }) {
    const title = html`<h3>${tools.length === 0 ? 'Tools' : count(tools.length, 'tool')}</h3>`;
    if (tool_visibility === 'none') return html`<section>${title}<p class="hint">The agent hides its tools.</p></section>`;
    if (tools.length === 0) return html`<section>${title}<p class="hint">The agent has no tools.</p></section>`;
    const wanted = this.#filter.trim().toLowerCase();
    const shown = tools.filter(({ entry, name }) => `${entry}/${name}`.toLowerCase().includes(wanted));
    const onInput = (/** @type {Event} */ { target }) => {
      this.#filter = /** @type {HTMLInputElement} */ (target).value;
      this.#render();
    };
    return html`
      <section>
        ${title}
        ${tools.length < MANY ? nothing : html`<input type="search" aria-label="Find a tool" placeholder="Find a tool" .value=${this.#filter} @input=${onInput}>`}
        ${shown.map((tool) => this.#tool(tool, settings !== undefined))}
        ${shown.length === 0 ? html`<p class="hint">No tool has this name.</p>` : nothing}
      </section>`;
  }

  /** @param {CardTool} listed @param {boolean} mayRun */
  #tool(listed, mayRun) {
    const { entry, name, summary, effect, needs_approval } = listed;
    const path = toolPath(this.agent, listed);
    const head = html`
      <span class="tool-name"><span class="tool-server">${entry}</span>${name}</span>
      <span class="tool-preview">${summary ?? ''}</span>
      <span class="tool-state">${needs_approval ? 'needs approval' : effect}</span>${icon('chevron')}`;
    if (summary === undefined) return html`<div class="tool card-tool"><div class="card-tool-name">${head}</div></div>`;
    const onToggle = (/** @type {Event} */ { currentTarget }) => {
      if (/** @type {HTMLDetailsElement} */ (currentTarget).open) void this.#readTool(path);
    };
    const state = this.#tools.get(path) ?? {};
    return html`
      <details class="tool card-tool" @toggle=${onToggle}>
        <summary>${head}</summary>
        <div class="tool-body">
          ${state.error === undefined ? nothing : html`<p class="hint" role="alert">${state.error}</p>`}
          ${state.tool ? this.#opened(path, state.tool, state, mayRun) : nothing}
        </div>
      </details>`;
  }

  /**
   * @param {string} path @param {CardTool} tool @param {ToolState} state @param {boolean} mayRun
   */
  #opened(path, tool, state, mayRun) {
    const { description, input_schema } = tool;
    return html`
      <p class="card-description" tabindex="0">${description}</p>
      ${folded('Schema of the arguments', JSON.stringify(input_schema, null, 2))}
      ${mayRun ? this.#form(path, tool, state) : html`<p class="hint">To run it by hand, use a token with the scope <code>admin</code>.</p>`}`;
  }

  /** @param {string} path @param {CardTool} tool @param {ToolState} state */
  #form(path, tool, { text, problem, asks, running, result }) {
    const onInput = (/** @type {Event} */ { target }) =>
      this.#change(path, { text: /** @type {HTMLTextAreaElement} */ (target).value, problem: undefined, asks: false });
    const run = (/** @type {boolean} */ approve) => () => this.#run(path, approve);
    return html`
      <form class="card-run" @submit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        if (tool.needs_approval) this.#change(path, { asks: true });
        else void this.#run(path, false);
      }}>
        <label>Arguments as JSON
          <textarea rows="4" spellcheck="false" .value=${text ?? skeletonOf(tool.input_schema)} @input=${onInput}
            aria-invalid=${problem !== undefined}></textarea>
        </label>
        ${problem === undefined ? nothing : html`<p class="card-problem" role="alert">${problem}</p>`}
        ${
          asks
            ? html`
              <div class="approval" role="alertdialog" aria-label="Approve the call">
                <span>A person approves each call of this tool.</span>
                <button type="button" class="primary" @click=${run(true)}>Approve and run</button>
                <button type="button" class="plain" @click=${() => this.#change(path, { asks: false })}>Not now</button>
              </div>`
            : running
              ? html`<button type="button" class="plain" @click=${() => running.abort()}>${icon('stop')} Stop</button> <span class="spinner"></span>`
              : html`<button class="primary">Run</button>`
        }
        ${result ? resultView(result) : nothing}
      </form>`;
  }

  /** @param {string} path */
  async #readTool(path) {
    const { tool } = this.#tools.get(path) ?? {};
    if (tool || !this.#view) return;
    try {
      this.#change(path, { tool: await this.#view.app.api.get(path), error: undefined });
    } catch (error) {
      this.#change(path, { error: `The tool cannot be read. ${/** @type {Error} */ (error).message}` });
    }
  }

  /** @param {string} path @param {boolean} approve */
  async #run(path, approve) {
    const state = this.#tools.get(path);
    if (!this.#view || !state?.tool || state.running) return;
    const parsed = argumentsIn(state.text ?? skeletonOf(state.tool.input_schema));
    if ('problem' in parsed) return this.#change(path, { problem: parsed.problem, asks: false });
    const running = new AbortController();
    this.#change(path, { running, problem: undefined, asks: false, result: undefined });
    try {
      const body = { arguments: parsed.value, ...(approve && { approve }) };
      const reply = await this.#view.app.api.send('POST', path, body, running.signal);
      this.#change(path, { result: await reply.json() });
    } catch (error) {
      const { name, code, message } = /** @type {ApiError} */ (error);
      if (code === 'approval_pending') this.#change(path, { asks: true });
      else this.#change(path, { problem: name === 'AbortError' ? 'Stopped. The tool may have run.' : message });
    }
    this.#change(path, { running: undefined });
  }

  /** @param {string} path @param {Partial<ToolState>} change */
  #change(path, change) {
    this.#tools.set(path, { ...this.#tools.get(path), ...change });
    this.#render();
  }
}

/** @param {ToolResult} result */
function resultView({ content, images, is_error, milliseconds }) {
  return html`
    <div class="block-head" role="status"><span>${is_error ? 'Failed' : 'Result'} · ${duration(milliseconds)}</span></div>
    <pre class="data" tabindex="0" data-bad=${is_error}>${cut(pretty(content))}</pre>
    ${images.filter((url) => url.startsWith('data:image/')).map((url) => html`<img src=${url} alt="Image of the tool">`)}`;
}

/** @param {string} label @param {string} text */
function folded(label, text) {
  return html`
    <details class="card-fold"><summary>${icon('chevron')} ${label}</summary><pre class="data" tabindex="0">${cut(text)}</pre></details>`;
}

/** @param {string} text */
function cut(text) {
  if (text.length <= MAX_SHOWN) return text;
  return `${text.slice(0, MAX_SHOWN)}\n… ${count(text.length - MAX_SHOWN, 'character')} more`;
}

customElements.define('agent-card-dialog', AgentCardDialog);

/** Opens the card of a conversation's agent. @param {View} view @param {Chat} chat */
export function openCard(view, chat) {
  const found = /** @type {AgentCardDialog | null} */ (document.querySelector('agent-card-dialog'));
  const dialog = found ?? /** @type {AgentCardDialog} */ (document.createElement('agent-card-dialog'));
  if (!found) document.body.append(dialog);
  void dialog.open(view, chat);
}
