/** @typedef {import('./app.js').PlaygroundApp} View */

/**
 * Opens a popover below or above the button that was clicked.
 * @param {View} view @param {Event} event @param {string} selector
 */
export function openPopover(view, event, selector) {
  const button = /** @type {HTMLElement} */ (event.currentTarget);
  const popover = view.find(selector);
  if (!popover?.togglePopover({ source: button })) return;
  const { left, right, bottom, top } = button.getBoundingClientRect();
  const { offsetWidth, offsetHeight } = popover;
  const x = left + offsetWidth > innerWidth - 8 ? right - offsetWidth : left;
  const y = bottom + offsetHeight + 8 > innerHeight ? top - offsetHeight - 6 : bottom + 6;
  popover.style.left = `${Math.max(8, x)}px`;
  popover.style.top = `${Math.max(8, y)}px`;
  /** @type {HTMLElement | null} */ (popover.querySelector('button, input:checked'))?.focus();
}
