import { html, svg } from 'lit/html.js';

/** Shapes on a grid of 20, with lines of 1.6 in the colour of the text. */
const SHAPES = {
  plus: svg`<path d="M10 4v12M4 10h12"/>`,
  menu: svg`<path d="M3.5 6h13M3.5 10h13M3.5 14h13"/>`,
  close: svg`<path d="m5 5 10 10M15 5 5 15"/>`,
  send: svg`<path d="M10 16V4M4.5 9.5 10 4l5.5 5.5"/>`,
  stop: svg`<rect x="5.5" y="5.5" width="9" height="9" rx="1.5" fill="currentColor" stroke="none"/>`,
  copy: svg`<rect x="7" y="7" width="9.5" height="9.5" rx="2"/><path d="M13 7V5H5v8h2"/>`,
  check: svg`<path d="m4.5 10.5 3.5 3.5 7.5-8"/>`,
  cross: svg`<path d="m6 6 8 8M14 6l-8 8"/>`,
  retry: svg`<path d="M15.5 8.500A6 6 0 1 0 16 11.500M16 4.500v4h-4"/>`,
  chevron: svg`<path d="m6 8 4 4 4-4"/>`,
  more: svg`<path d="M5 10h.01M10 10h.01M15 10h.01" stroke-width="2.6"/>`,
  edit: svg`<path d="m12.5 4.5 3 3L7 16H4v-3z"/>`,
  fork: svg`<path d="M6 4v3q0 3 4 3t4-3V4M10 10v6"/>`,
  trash: svg`<path d="M4 6h12M8 6V4.500h4V6M5.5 6l.7 9.500h7.600l.7-9.5"/>`,
  key: svg`<circle cx="7" cy="13" r="3"/><path d="m9.2 10.8 6.3-6.300M13 7l2 2"/>`,
  code: svg`<path d="m7 6-4 4 4 4M13 6l4 4-4 4"/>`,
  columns: svg`<rect x="3" y="4" width="6" height="12" rx="1.500"/><rect x="11" y="4" width="6" height="12" rx="1.500"/>`,
  pulse: svg`<path d="M2.5 10.500h3l2.5-6 4 11 2.5-5h3"/>`,
  image: svg`<rect x="3" y="4" width="14" height="12" rx="2"/><circle cx="7.5" cy="8.500" r="1.3"/><path d="m4 15 4.500-4 3 2.500 2.500-2.500 3 3"/>`,
  keyboard: svg`<rect x="2.5" y="5" width="15" height="10" rx="2"/><path d="M6 8.500h.01M9 8.500h.01M12 8.500h.01M14.500 8.500h.01M7 11.800h6"/>`,
  warning: svg`<path d="M10 3.5 17 16H3zM10 8.500v3.500M10 14v.2"/>`,
  info: svg`<circle cx="10" cy="10" r="6.500"/><path d="M10 9.500v4M10 6.500v.2"/>`,
  filter: svg`<path d="M3.500 6h13M6 10h8M8.500 14h3"/>`,
  save: svg`<path d="M10 3.500v9M6 9l4 4 4-4M4 16.500h12"/>`,
  down: svg`<path d="M10 4v12M4.5 10.5 10 16l5.5-5.5"/>`,
};

/** @typedef {keyof typeof SHAPES} IconName */

/**
 * An icon. Decoration only: every icon has a text beside it, or is in a button with a label.
 * @param {IconName} name
 */
export function icon(name) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true">${SHAPES[name]}</svg>`;
}

/**
 * A button that shows an icon only.
 * @param {IconName} name @param {string} label @param {(event: Event) => void} onClick @param
 *   {string} [more] other classes
 */
export function iconButton(name, label, onClick, more = '') {
  return html`
    <button type="button" class=${`icon-button ${more}`} title=${label} aria-label=${label} @click=${onClick}>
      ${icon(name)}
    </button>`;
}

/** @param {string} text what is copied @param {string} label */
export function copyButton(text, label) {
  const onClick = (/** @type {Event} */ event) => copyFrom(/** @type {HTMLElement} */ (event.currentTarget), text);
  return html`
    <button type="button" class="small copy" title=${label} aria-label=${label} @click=${onClick}>
      ${icon('copy')}${icon('check')}
    </button>`;
}

/** How long a button shows that it has copied, in milliseconds. */
const COPIED_TIME = 1500;

/**
 * Copies a text and marks the button. A browser that refuses is reported by the event `refused`.
 * @param {HTMLElement} button @param {string} text
 */
export async function copyFrom(button, text) {
  if (!(await copyText(text))) {
    const detail = 'The browser does not let this page copy. Select the text, and copy it with the keyboard.';
    return void button.dispatchEvent(new CustomEvent('refused', { bubbles: true, detail }));
  }
  button.dataset.copied = '';
  setTimeout(() => delete button.dataset.copied, COPIED_TIME);
}

/**
 * Browsers offer the clipboard under HTTPS and on localhost only; elsewhere a selection is copied.
 * @param {string} text @returns {Promise<boolean>} whether it was copied
 */
async function copyText(text) {
  if (window.isSecureContext) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'off-screen';
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  return isCopied;
}

/** Milliseconds as people read them: `340 ms`, `1.8 s`, `2 min 5 s`. @param {number} ms */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** @param {number} value @param {string} noun in the singular */
export function count(value, noun) {
  return `${value.toLocaleString('en')} ${noun}${value === 1 ? '' : 's'}`;
}

/**
 * How long ago something was: `now`, `5 min`, `3 h`, `2 d`, then the date. @param {number} seconds
 * since 1970
 */
export function ago(seconds) {
  const minutes = Math.floor((Date.now() / 1000 - seconds) / 60);
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
  if (minutes < 7 * 24 * 60) return `${Math.floor(minutes / (24 * 60))} d`;
  return new Date(seconds * 1000).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
}

/** JSON objects with two spaces; other texts unchanged. @param {string} text */
export function pretty(text) {
  return rewrite(text, (value) => JSON.stringify(value, null, 2)) ?? text;
}

/** Characters of the arguments that one line shows. */
const MAX_PREVIEW = 300;

/**
 * A tool's arguments on one line: `timeZone: "Asia/Tokyo", days: 2`. @param {string} text JSON,
 * perhaps incomplete
 */
export function preview(text) {
  const line = rewrite(text, (value) =>
    Object.entries(value)
      .map(([name, one]) => `${name}: ${JSON.stringify(one)}`)
      .join(', '),
  );
  return line?.slice(0, MAX_PREVIEW) ?? '';
}

/**
 * @param {string} text @param {(value: object) => string} write @returns {string | undefined}
 * undefined if the text is not a JSON object or array, or one that is too deep
 */
function rewrite(text, write) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null ? write(value) : undefined;
  } catch {
    return undefined;
  }
}
