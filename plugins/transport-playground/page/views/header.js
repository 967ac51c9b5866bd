import { html, nothing } from 'lit/html.js';
import { agentSelect } from './columns.js';
import { icon, iconButton } from './parts.js';
import { showShortcuts } from './shortcuts.js';

/** @typedef {import('./app.js').PlaygroundApp} View */

/**
 * The bar above the conversation: its agent, and what can be opened beside it. @param {View} view
 */
export function header(view) {
  const { app } = view;
  const { chat, chats, server } = app;
  const isAlone = chats.length === 1;
  const compare = html`
    <button class="tool-button" title="Compare" aria-label="Compare two agents" @click=${() => app.compare()}>
      ${icon('columns')}<span>Compare</span>
    </button>`;
  return html`
    <header class="top">
      ${iconButton('menu', 'Open the menu', () => view.toggleSidebar(true), 'only-narrow')}
      ${isAlone ? agentSelect(chat, view, 'Agent') : nothing}
      ${isAlone && chat.agent !== '' ? iconButton('info', 'About this agent', () => view.openCard(app.chat)) : nothing}
      <span class="spread"></span>
      ${iconButton('keyboard', 'Keyboard shortcuts', () => showShortcuts(view), 'only-keys')}
      ${isAlone && server.isOpen ? compare : nothing} ${panelButton(view, 'code', 'Code')} ${panelButton(view, 'events', 'Events')}
    </header>`;
}

/** @param {View} view @param {'code' | 'events'} panel @param {string} label */
function panelButton(view, panel, label) {
  const isOn = view.panel === panel;
  return html`
    <button class="tool-button" title=${label} aria-label=${label} aria-pressed=${isOn}
      @click=${() => view.showPanel(isOn ? '' : panel)}>
      ${icon(panel === 'code' ? 'code' : 'pulse')}<span>${label}</span>
    </button>`;
}
