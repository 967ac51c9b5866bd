/** Parts of the page that stay when what is in them is replaced, from the outside in. */
const REGIONS = ['main', '.sidebar', '.inspector', '.top', '.dock', '.pane', '.turn', 'dialog[open]'];

const CONTROLS = 'a[href], button, input, select, textarea, summary';

/**
 * Where the focus is.
 * @typedef {object} Place
 * @property {Element} control
 * @property {string} name of the control
 * @property {number} at its index among those of its name in the innermost region
 * @property {{ selector: string, at: number }[]} path the regions around it, from the outside in
 */

/**
 * A place whose control is away, and what has the focus until it is back. @type {{ place: Place,
 * deputy: Element } | undefined}
 */
let waiting;

/**
 * Changes the page, and keeps the focus where it is. If its control is replaced, the focus goes to
 * the one of the same name in the same region; if that one cannot be used, to another one of its
 * group. Until there is one, the region has the focus; below the conversation, the message.
 * @param {() => void} change
 */
export function keepFocus(change) {
  const place = currentPlace();
  change();
  if (!place) waiting = undefined;
  else if (place === waiting?.place || isFree()) restore(place);
}

/** @returns {Place | undefined} undefined if no control has the focus that could be replaced */
function currentPlace() {
  const { activeElement: control } = document;
  if (control && control === waiting?.deputy) return waiting.place;
  if (!control?.matches(CONTROLS) || control.id === 'message') return undefined;
  const path = pathTo(control);
  const name = nameOf(control);
  return { control, name, path, at: controlsIn(regionAt(path).region, name).indexOf(control) };
}

/** @param {Place} place */
function restore(place) {
  const { control, name, at, path } = place;
  const { region, isInnermost } = regionAt(path);
  const same = isInnermost ? controlsIn(region, name) : [];
  const found = isUsable(control) ? control : (same[at] ?? same[0]);
  const group = found?.closest('[role=group]')?.querySelectorAll(CONTROLS) ?? [];
  const target = [found, ...group].find((one) => one && isUsable(one));
  if (!target && place === waiting?.place) return;
  const message = region.matches('.dock') && matchMedia('(hover: hover)').matches ? region.querySelector('#message') : null;
  const next = /** @type {HTMLElement} */ (target ?? message ?? region);
  waiting = next === region ? { place, deputy: region } : undefined;
  if (next === region && !region.hasAttribute('tabindex')) region.setAttribute('tabindex', '-1');
  next.focus({ preventScroll: true });
}

/** @param {Element} control @returns {Place['path']} */
function pathTo(control) {
  /** @type {ParentNode} */
  let outer = document;
  const path = [];
  for (const selector of REGIONS) {
    const region = control.closest(selector);
    if (!region) continue;
    path.push({ selector, at: [...outer.querySelectorAll(selector)].indexOf(region) });
    outer = region;
  }
  return path;
}

/**
 * The innermost region of a path that is there; at least the main part of the page. @param
 * {Place['path']} path
 */
function regionAt(path) {
  /** @type {Element | undefined} */
  let region;
  for (const [depth, { selector, at }] of path.entries()) {
    const inner = (region ?? document).querySelectorAll(selector)[at];
    if (!inner) break;
    region = inner;
    if (depth === path.length - 1) return { region, isInnermost: true };
  }
  return { region: region ?? document.querySelector('main') ?? document.body, isInnermost: false };
}

/** @param {Element} region @param {string} name */
function controlsIn(region, name) {
  return [...region.querySelectorAll(CONTROLS)].filter((one) => nameOf(one) === name);
}

/** What a control is called, and of which kind it is. @param {Element} control */
function nameOf({ tagName, id, ariaLabel, textContent }) {
  return `${tagName} ${id || ariaLabel || textContent?.trim()}`;
}

/** @param {Element} control */
function isUsable(control) {
  return control.isConnected && !control.matches(':disabled') && control.checkVisibility();
}

/** Whether nothing that can be used has the focus. */
function isFree() {
  const { activeElement: active } = document;
  return !active || active === document.body || !isUsable(active);
}
