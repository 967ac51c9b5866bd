import { html } from 'lit/html.js';
import { icon } from './parts.js';

/** @typedef {import('./app.js').PlaygroundApp} View */

/** An area follows new text while its end is at most this many pixels away. */
const NEAR_END = 80;

/** The areas whose readers have scrolled up. @type {WeakSet<Element>} */
const away = new WeakSet();

/** How far each area was scrolled when that was last known. @type {WeakMap<Element, number>} */
const tops = new WeakMap();

/** The areas that scroll: one for each conversation that is shown. @param {View} view */
function areas(view) {
  return [...view.querySelectorAll('.pane')];
}

/** Shows the newest text, where the reader has not scrolled up. @param {View} view */
export function followEnd(view) {
  for (const area of areas(view)) {
    if (away.has(area))
      note(area, view); // a card that closes may leave nothing to scroll
    else area.scrollTo({ top: 1e9 });
    tops.set(area, area.scrollTop);
  }
}

/** An area was scrolled. @param {View} view @param {Event} event */
export function noteEnd(view, { currentTarget }) {
  note(/** @type {Element} */ (currentTarget), view);
}

/**
 * Notes whether the end of an area is in view, or its reader has left it: the text may have grown
 * since the page scrolled to its end. @param {Element} area @param {View} view
 */
function note(area, view) {
  const { scrollTop } = area;
  const isAtEnd = area.scrollHeight - scrollTop - area.clientHeight < NEAR_END;
  const isUp = scrollTop < (tops.get(area) ?? 0);
  tops.set(area, scrollTop);
  if (isAtEnd !== away.has(area) || !(isAtEnd || isUp)) return;
  if (isAtEnd) away.delete(area);
  else away.add(area);
  view.requestUpdate();
}

/** Whether a reader has scrolled up. @param {View} view */
export function isAway(view) {
  return areas(view).some((area) => away.has(area));
}

/** @param {View} view */
export function goToEnd(view) {
  for (const area of areas(view)) away.delete(area);
  view.requestUpdate();
}

/** A button that leads to the newest text. @param {View} view */
export function toEnd(view) {
  return html`<button class="to-end" @click=${() => goToEnd(view)}>${icon('down')} Newest</button>`;
}

/**
 * Shows other turns in an area. One of them stays where the reader sees it.
 * @param {View} view @param {Element | null} area @param {() => number} at the place of the turn
 *   among those that are shown @param {() => Promise<unknown>} change
 */
export async function keepPlace(view, area, at, change) {
  if (!area) return;
  const top = () => area.querySelectorAll('.turn')[at()]?.getBoundingClientRect().top;
  const before = top();
  away.add(area);
  await change();
  await view.updateComplete;
  const after = top();
  if (before !== undefined && after !== undefined) area.scrollBy({ top: after - before });
  note(area, view);
}

/**
 * Adds earlier turns above what the reader sees, which stays where it is.
 * @param {View} view @param {import('../conversation.js').Conversation} chat @param {Element |
 *   null} area that shows them
 */
export async function loadOlder(view, chat, area) {
  const below = area ? area.scrollHeight - area.scrollTop : 0;
  if (area) away.add(area);
  await chat.history.loadOlder();
  await view.updateComplete;
  area?.scrollTo({ top: area.scrollHeight - below });
}
