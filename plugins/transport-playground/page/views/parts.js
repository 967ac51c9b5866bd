import { html, svg } from 'lit/html.js';

/** Drawn on a grid of 20 with lines of 1.6, in the colour of the text. */
const SHAPES = {
  plus: svg`<path d="M10 4v12M4 10h12"/>`,
  menu: svg`<path d="M3.500 6h13M3.500 10h13M3.500 14h13"/>`,
  close: svg`<path d="m5 5 10 10M15 5 5 15"/>`,
  send: svg`<path d="M10 16V4M4.500 9.500 10 4l5.500 5.500"/>`,
  stop: svg`<rect x="5.500" y="5.500" width="9" height="9" rx="1.500" fill="currentColor" stroke="none"/>`,
  copy: svg`<rect x="7" y="7" width="9.500" height="9.500" rx="2"/><path d="M13 7V5.500a2 2 0 0 0-2-2H5.500a2 2 0 0 0-2 2V11a2 2 0 0 0 2 2H7"/>`,
  check: svg`<path d="m4.500 10.500 3.500 3.500 7.500-8"/>`,
  cross: svg`<path d="m6 6 8 8M14 6l-8 8"/>`,
  retry: svg`<path d="M15.500 8.500A6 6 0 1 0 16 11.500M16 4.500v4h-4"/>`,
  chevron: svg`<path d="m6 8 4 4 4-4"/>`,
  more: svg`<circle cx="5" cy="10" r="1.200" fill="currentColor"/><circle cx="10" cy="10" r="1.200" fill="currentColor"/><circle cx="15" cy="10" r="1.200" fill="currentColor"/>`,
  edit: svg`<path d="m12.500 4.500 3 3L7 16H4v-3z"/>`,
  fork: svg`<circle cx="6" cy="5" r="1.800"/><circle cx="14" cy="5" r="1.800"/><circle cx="10" cy="15" r="1.800"/><path d="M6 7v1.500a2 2 0 0 0 2 2h4a2 2 0 0 0 2-2V7M10 10.500V13"/>`,
  trash: svg`<path d="M4 6h12M8 6V4.500h4V6M5.500 6l.7 9.500h7.600l.7-9.500"/>`,
  key: svg`<circle cx="7" cy="13" r="3"/><path d="m9.200 10.800 6.300-6.300M13 7l2 2"/>`,
  code: svg`<path d="m7 6-4 4 4 4M13 6l4 4-4 4"/>`,
  pulse: svg`<path d="M2.500 10.500h3l2.500-6 4 11 2.500-5h3"/>`,
  warning: svg`<path d="M10 3.500 17 16H3zM10 8.500v3.500M10 14v.2"/>`,
  down: svg`<path d="M10 4v12M4.500 10.500 10 16l5.500-5.500"/>`,
};

/** An icon. It is decoration: what it means is said in words beside it. @param {keyof SHAPES} name */
export function icon(name) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true">${SHAPES[name]}</svg>`;
}

/** Copies a text. The clipboard of browsers needs HTTPS or localhost; elsewhere a selection is copied. @param {string} text */
async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'off-screen';
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** How long a button says that it has copied, in milliseconds. */
const THANKS = 1500;

/** Copies a text and shows so on the button that was pressed. @param {Event} event @param {string} text */
export async function copyFrom(event, text) {
  const button = /** @type {HTMLElement} */ (event.currentTarget);
  await copyText(text);
  button.dataset.copied = '';
  setTimeout(() => delete button.dataset.copied, THANKS);
}

/** @param {string} text @param {string} label */
export function copyButton(text, label) {
  return html`<button class="small copy" title=${label} aria-label=${label} @click=${(/** @type {Event} */ event) => copyFrom(event, text)}>${icon('copy')}${icon('check')}</button>`;
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

/** How long ago something was: `now`, `5 min`, `3 h`, `2 d`, then the date. @param {number} seconds since 1970 @param {number} now in milliseconds */
export function ago(seconds, now = Date.now()) {
  const minutes = Math.floor((now / 1000 - seconds) / 60);
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
  if (minutes < 7 * 24 * 60) return `${Math.floor(minutes / (24 * 60))} d`;
  return new Date(seconds * 1000).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
}

/** JSON with two spaces; anything else as it is. @param {string} text */
export function pretty(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

/** A tool's arguments on one line: `timeZone: "Asia/Tokyo", days: 2`. @param {string} text JSON, perhaps not complete yet */
export function preview(text) {
  try {
    const value = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return text;
    return Object.entries(value)
      .map(([name, part]) => `${name}: ${JSON.stringify(part)}`)
      .join(', ');
  } catch {
    return text;
  }
}
