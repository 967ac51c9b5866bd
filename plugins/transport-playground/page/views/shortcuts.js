import { html } from 'lit/html.js';

/** @typedef {import('./app.js').PlaygroundApp} View */

/**
 * Keys that work everywhere on the page: combinations that browsers and screen readers leave to
 * pages.
 * @type {readonly { code: string, label: string, run: (view: View) => void }[]}
 */
const SHORTCUTS = [
  { code: 'KeyN', label: 'New chat', run: (view) => view.newChat() },
  { code: 'KeyM', label: 'Go to the message', run: (view) => view.find('#message')?.focus() },
  { code: 'KeyS', label: 'Search the sessions', run: searchSessions },
  { code: 'KeyE', label: 'Show or hide the events', run: (view) => view.showPanel(view.panel === 'events' ? '' : 'events') },
];

const IS_MAC = navigator.userAgent.includes('Mac');

/** @param {View} view */
export function listenForShortcuts(view) {
  addEventListener('keydown', (event) => {
    const { altKey, shiftKey, ctrlKey, metaKey, code, key } = event;
    if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return;
    const run =
      altKey && shiftKey && !ctrlKey && !metaKey
        ? SHORTCUTS.find((one) => one.code === code)?.run
        : otherKey(view, key, /** @type {Element} */ (event.target));
    if (!run) return;
    event.preventDefault();
    run(view);
  });
}

/**
 * @param {View} view @param {string} key @param {Element} target @returns {((view: View) => void) |
 * undefined}
 */
function otherKey(view, key, target) {
  if (key === '?' && !target.closest('input, textarea, select')) return showShortcuts;
  const isPopoverOpen = document.querySelector(':popover-open') !== null;
  if (key !== 'Escape' || isPopoverOpen) return undefined;
  if (view.app.isRunning && !target.closest('.inspector')) return () => view.app.stop();
  return view.panel === '' ? undefined : closePanel;
}

/** @param {View} view */
function closePanel(view) {
  view.showPanel('');
  void view.updateComplete.then(() => view.focusMessage());
}

/** @param {View} view */
export function showShortcuts(view) {
  /** @type {HTMLDialogElement | null} */ (view.find('#shortcuts-dialog'))?.showModal();
}

/** @param {View} view */
function searchSessions(view) {
  if (view.isDrawer) view.toggleSidebar(true);
  void view.updateComplete.then(() => (view.find('#sidebar input[type=search]') ?? view.find('.session-open'))?.focus());
}

/** The list of the keys. */
export function shortcutList() {
  const row = (/** @type {string[]} */ keys, /** @type {string} */ label) =>
    html`<div><dt>${label}</dt><dd>${keys.map((key) => html`<kbd>${key}</kbd> `)}</dd></div>`;
  const [alt, shift] = IS_MAC ? ['⌥', '⇧'] : ['Alt', 'Shift'];
  return html`
    <dialog id="shortcuts-dialog" aria-labelledby="shortcuts-title">
      <form method="dialog">
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <dl class="shortcuts">
          ${row(['Enter'], 'Send')} ${row([shift, 'Enter'], 'Start a new line')} ${row(['Esc'], 'Stop the turn, or close the panel')}
          ${SHORTCUTS.map(({ code, label }) => row([alt, shift, code.slice(3)], label))}
          ${row(['?'], 'Show this list, outside of text fields')}
        </dl>
        <div class="dialog-buttons"><span class="spread"></span><button class="primary">Close</button></div>
      </form>
    </dialog>`;
}
