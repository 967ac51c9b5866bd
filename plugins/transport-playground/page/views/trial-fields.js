import { html, nothing } from 'lit/html.js';
import { changeTrial, EFFORTS, isTrial, problemsOf, resetTrial, trialOf } from '../trial.js';

/** @typedef {import('../trial.js').Trial} Trial */
/** @typedef {import('../trial.js').Chat} Chat */
/** @typedef {import('../conversation.js').Conversation} Conversation */
/** @typedef {import('./app.js').PlaygroundApp} View */

/**
 * The fields for a prompt and parameters that are tried in one conversation.
 * @param {Chat} chat @param {import('../agent-cards.js').AgentCard['settings']} settings what the
 *   agent has, if the caller may know @param {() => void} onChange
 */
export function trialFields(chat, settings, onChange) {
  const trial = trialOf(chat);
  const problems = problemsOf(trial);
  const params = settings?.params ?? {};
  const set =
    (/** @type {keyof Trial} */ name) =>
    (/** @type {Event} */ { target }) => {
      changeTrial(chat, { [name]: /** @type {HTMLInputElement} */ (target).value });
      onChange();
    };
  const field = (
    /** @type {'temperature' | 'maxTokens'} */ name,
    /** @type {string} */ label,
    /** @type {unknown} */ own,
  ) => html`
    <label>${label}
      <input .value=${trial[name]} inputmode="decimal" autocomplete="off" placeholder=${own === undefined ? 'as usual' : String(own)}
        aria-invalid=${problems[name] !== undefined} aria-describedby=${`try-${name}`} @input=${set(name)}>
      <span class="hint" id=${`try-${name}`} role="status">${problems[name] ?? (own === undefined ? '' : FIXED)}</span>
    </label>`;
  const reset = () => {
    resetTrial(chat);
    onChange();
  };
  return html`
    <p class="hint">Tried here, not saved: it is sent with each message of this session from this tab, until you reset it.</p>
    <label>Prompt in place of the agent's
      <textarea rows="4" .value=${trial.instructions} placeholder=${settings?.system?.slice(0, 300) || "The agent's own prompt"}
        @input=${set('instructions')}></textarea>
    </label>
    <div class="try-row">
      ${field('temperature', 'Temperature', params.temperature)}
      ${field('maxTokens', 'Max tokens', params.max_completion_tokens ?? params.max_tokens)}
      <label>Reasoning effort
        <select @change=${set('effort')}>
          ${['', ...EFFORTS].map((one) => html`<option value=${one} .selected=${one === trial.effort}>${one || 'as usual'}</option>`)}
        </select>
        <span class="hint">${params.reasoning_effort === undefined ? '' : FIXED}</span>
      </label>
    </div>
    <button type="button" class="plain" ?disabled=${!isTrial(trial)} @click=${reset}>Reset to the agent's own</button>`;
}

const FIXED = 'Set by the agent: another value has no effect.';

/**
 * What says above the message that something is tried. @param {Conversation} chat @param {View}
 * view
 */
export function trialNote(chat, view) {
  if (!isTrial(trialOf(chat))) return nothing;
  const current = view.app.placeOf(chat);
  const reset = () => {
    resetTrial(current());
    view.requestUpdate();
  };
  return html`
    <div class="try-note" role="note">
      <span>Prompt or parameters are tried here, not saved.</span>
      <button class="small" @click=${() => view.openCard(current())}>Change</button>
      <button class="small" @click=${reset}>Reset</button>
    </div>`;
}
