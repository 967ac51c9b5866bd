import { html, nothing } from 'lit/html.js';
import { textOnly } from '../agent-cards.js';
import { ACCEPTED, imageFrom, isShown } from '../images.js';
import { icon, iconButton } from './parts.js';

/** @typedef {import('./app.js').PlaygroundApp} View */

/** Files whose refusal is explained. */
const MAX_REFUSALS = 3;

/** The images of a message, as they are in the conversation. @param {readonly string[]} images */
export function messageImages(images) {
  if (images.length === 0) return nothing;
  return html`<div class="images">${images.map((url, at) => image(url, `Image ${at + 1} of the message`))}</div>`;
}

/**
 * Remote images are not loaded: their servers would learn who reads. @param {string} url @param
 * {string} alt
 */
function image(url, alt) {
  if (isShown(url)) return html`<img src=${url} alt=${alt}>`;
  if (!/^https?:/i.test(url)) return html`<span class="hint">An image that is not shown</span>`;
  return html`<a href=${url} target="_blank" rel="noopener noreferrer" title="Image, not loaded">${url}</a>`;
}

/** The images that the next message has, each with a button that removes it. @param {View} view */
export function thumbnails(view) {
  const { images } = view.app.chat;
  if (images.length === 0) return nothing;
  const remove = (/** @type {string} */ url) => {
    const { chat } = view.app; // may be another one by now
    chat.setImages(chat.images.filter((one) => one !== url));
    view.focusMessage();
  };
  return html`
    <ul class="thumbnails" aria-label="Images of the message">
      ${images.map(
        (url, at) => html`
          <li><img src=${url} alt=${`Image ${at + 1}`}>${iconButton('close', `Remove image ${at + 1}`, () => remove(url))}</li>`,
      )}
    </ul>`;
}

/** A button that opens the file dialog. @param {View} view */
export function attachButton(view) {
  const onChange = (/** @type {Event} */ { target }) => {
    const field = /** @type {HTMLInputElement} */ (target);
    void attach(view, [...(field.files ?? [])]);
    field.value = ''; // the same file can be chosen again
  };
  return html`
    <input id="image-files" type="file" multiple accept=${ACCEPTED} aria-label="Image files" hidden @change=${onChange}>
    <button type="button" class="icon-button" title="Add images" aria-label="Add images" ?disabled=${view.app.chat.agent === ''}
      @click=${() => view.find('#image-files')?.click()}>
      ${icon('image')}
    </button>`;
}

/**
 * Adds files to the next message. What cannot be sent is said, and the draft stays. @param {View}
 * view @param {readonly File[]} files
 */
export async function attach(view, files) {
  const { chat, chats } = view.app;
  const [agent] = await textOnly(view.app, [...new Set(chats.map((one) => one.agent))]);
  if (agent !== undefined) return chat.setNotice(`${agent} cannot read images: its model takes text only.`);
  const refused = [];
  for (const file of files) {
    try {
      const url = await imageFrom(file, chat.images);
      if (!chat.images.includes(url)) chat.setImages([...chat.images, url]);
    } catch (error) {
      refused.push(/** @type {Error} */ (error).message);
    }
  }
  const more = refused.length - MAX_REFUSALS;
  if (refused.length > 0)
    chat.setNotice([...refused.slice(0, MAX_REFUSALS), more > 0 ? `And ${more} more.` : ''].join(' ').trim());
}

/**
 * Takes files that are dropped onto the page, and images that are pasted into the message. Without
 * this the browser would leave the page and show the file. @param {View} view
 */
export function listenForFiles(view) {
  const hasFiles = (/** @type {DragEvent} */ { dataTransfer }) => dataTransfer?.types.includes('Files') ?? false;
  const mark = (/** @type {boolean} */ isOver) => view.toggleAttribute('data-drop', isOver);
  view.addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  view.addEventListener('dragleave', ({ relatedTarget }) => {
    if (!relatedTarget) mark(false);
  });
  view.addEventListener('drop', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(false);
    void attach(view, [...(event.dataTransfer?.files ?? [])]);
  });
  view.addEventListener('paste', (event) => {
    const { files, types } = event.clipboardData ?? {};
    const isText = types?.includes('text/plain'); // a text processor adds a picture of the text
    if (!files?.length || isText || /** @type {Element} */ (event.target).id !== 'message') return;
    event.preventDefault();
    void attach(view, [...files]);
  });
}
