import { html } from 'lit/html.js';
import { icon } from './parts.js';

/** @typedef {import('./app.js').PlaygroundApp} View */

/** The transcript follows new text while its end is at most this many pixels away. */
const NEAR_END = 80;

/** Shows the newest text, unless the reader has scrolled up. @param {View} view */
export function followEnd(view) {
  if (view.isAtEnd) view.find('#transcript')?.scrollTo({ top: 1e9 });
  else noteEnd(view); // a card that closes may leave nothing to scroll
}

/** Notes whether the end is in view. @param {View} view */
export function noteEnd(view) {
  const area = view.find('#transcript');
  if (!area) return;
  const isAtEnd = area.scrollHeight - area.scrollTop - area.clientHeight < NEAR_END;
  if (isAtEnd === view.isAtEnd) return;
  view.isAtEnd = isAtEnd;
  view.requestUpdate();
}

/** A button that leads to the newest text. @param {View} view */
export function toEnd(view) {
  const onClick = () => {
    view.isAtEnd = true;
    view.requestUpdate();
  };
  return html`<button class="to-end" @click=${onClick}>${icon('down')} Newest</button>`;
}

/**
 * Adds earlier turns above what the reader sees, which stays where it is.
 * @param {View} view @param {import('../conversation.js').Conversation} chat
 */
export async function loadOlder(view, chat) {
  const area = view.find('#transcript');
  const below = area ? area.scrollHeight - area.scrollTop : 0;
  view.isAtEnd = false;
  await chat.history.loadOlder();
  await view.updateComplete;
  area?.scrollTo({ top: area.scrollHeight - below });
}
