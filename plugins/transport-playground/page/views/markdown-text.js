import { keepFocus } from './focus.js';
import { wrapButton } from './wrap.js';

/** @type {Promise<typeof import('../markdown.js')> | undefined} */
let loading;
/** @type {typeof import('../markdown.js') | undefined} */
let renderer;

/** @type {Promise<typeof import('../highlight.js')> | undefined} */
let highlighter;

/** Longer blocks of code stay without colours: they would hold the page up. In characters. */
const MAX_COLOURED = 20_000;

/** So does code with longer lines or gaps, which take the square of their length. In characters. */
const [MAX_LINE, MAX_GAP] = [1000, 500];

/** How long the last block of a text must stay the same before it is coloured, in milliseconds. */
const QUIET_TIME = 150;

/** The time of a frame, in milliseconds. */
const FRAME = 16;

/** How long the page may be held up by the rendering of a text, in milliseconds. */
const SLICE = 50;

/** Characters that are split into blocks at once. */
const PORTION = 50_000;

/** Blocks at the end of a text that may change when it grows. */
const OPEN_BLOCKS = 2;

/**
 * Renders a model's text as Markdown. Blocks that did not change keep their nodes: streaming stays
 * cheap, and a selection survives. A long text is rendered in several frames. The text is shown
 * unrendered until the renderer is loaded. Each time the text is rendered anew, `resize` tells it:
 * its height may have changed.
 */
class MarkdownText extends HTMLElement {
  #text = '';
  /** The blocks that are rendered. @type {string[]} */
  #sources = [];
  /** The start of the text whose blocks no longer change, and their number. */
  #fixed = { text: '', count: 0 };
  /** @type {import('../markdown.js').Links} */
  #links = {};
  #isPending = false;
  /** How long the last rendering took: the next one of a slow text waits as long. */
  #pause = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #quiet;

  /** @param {string} text */
  set text(text) {
    if (text === this.#text && this.hasChildNodes()) return;
    this.#text = text;
    if (renderer) {
      if (this.hasChildNodes()) this.#soon();
      else this.#render();
      return;
    }
    if (this.#sources.length === 0) this.#showPlain();
    loading ??= import('../markdown.js');
    loading.then(
      (module) => {
        renderer = module;
        this.#render();
      },
      () => undefined,
    );
  }

  get text() {
    return this.#text;
  }

  #soon() {
    if (this.#isPending) return;
    this.#isPending = true;
    const render = () => {
      this.#isPending = false;
      const began = performance.now();
      keepFocus(() => this.#render());
      this.#pause = performance.now() - began;
    };
    if (this.#pause < FRAME) requestAnimationFrame(render);
    else setTimeout(() => requestAnimationFrame(render), this.#pause);
  }

  #showPlain() {
    const paragraph = document.createElement('p');
    paragraph.className = 'plain';
    paragraph.dir = 'auto';
    paragraph.textContent = this.#text;
    this.replaceChildren(paragraph);
  }

  #render() {
    if (!renderer) return;
    const text = this.#text.replaceAll(/\r\n?/g, '\n');
    if (!text.startsWith(this.#fixed.text)) this.#fixed = { text: '', count: 0 };
    if (this.#sources.length === 0) this.replaceChildren();
    const { text: before, count } = this.#fixed;
    const { blocks, isAll } = this.#nextBlocks(text.slice(before.length));
    const limit = isAll ? blocks.length : blocks.length - OPEN_BLOCKS;
    const began = performance.now();
    let at = 0;
    while (at < limit && performance.now() - began < SLICE) this.#renderBlock(count + at, blocks[at++]?.source ?? '');
    const isDone = isAll && at === limit;
    if (isDone) {
      this.#sources.length = count + at;
      while (this.children.length > count + at) this.lastElementChild?.remove();
    }
    for (let index = count; index < count + at - (isDone ? 1 : 0); index++) colour(this.children[index]);
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => colour(this), QUIET_TIME); // the last block may still grow
    const open = blocks[Math.min(at, blocks.length - OPEN_BLOCKS)];
    if (open) this.#fixed = { text: text.slice(0, before.length + open.start), count: count + blocks.indexOf(open) };
    this.dispatchEvent(new Event('resize', { bubbles: true }));
    if (!isDone) this.#soon();
  }

  /** The blocks of the start of a text. @param {string} rest */
  #nextBlocks(rest) {
    for (let size = PORTION; ; size *= 4) {
      const blocks = renderer?.blocksOf(rest.slice(0, size), this.#links) ?? [];
      if (size >= rest.length || blocks.length > OPEN_BLOCKS) return { blocks, isAll: size >= rest.length };
    }
  }

  /** @param {number} at @param {string} source */
  #renderBlock(at, source) {
    if (!renderer || this.#sources[at] === source) return;
    this.#sources[at] = source;
    const wrapper = document.createElement('div');
    wrapper.className = 'block';
    wrapper.dir = 'auto'; // lists and tables begin at the side where their text begins
    wrapper.append(renderer.renderBlock(source, this.#links));
    for (const code of wrapper.querySelectorAll('code')) code.dir = 'ltr';
    for (const pre of wrapper.querySelectorAll('pre')) addFrame(pre);
    for (const table of wrapper.querySelectorAll('table')) addScroller(table);
    const old = this.children[at];
    if (old) old.replaceWith(wrapper);
    else this.append(wrapper);
  }
}

/** Colours the code below an element, once. @param {Element | undefined} element */
function colour(element) {
  for (const code of element?.querySelectorAll('pre > code:not([data-coloured])') ?? []) {
    const text = code.textContent;
    code.setAttribute('data-coloured', '');
    if (code.className !== '' && isShort(text)) void colourCode(code, text, languageOf(code));
  }
}

/** Whether code can be coloured in a short time. @param {string} text */
function isShort(text) {
  if (text.length > MAX_COLOURED || text.includes('\n'.repeat(MAX_GAP))) return false;
  return text.split('\n').every(({ length }) => length <= MAX_LINE);
}

/** @param {Element} code @param {string} text @param {string} language */
async function colourCode(code, text, language) {
  highlighter ??= import('../highlight.js');
  const module = await highlighter.catch(() => undefined); // the code can be read without colours
  const markup = module?.highlight(text, language);
  if (markup !== undefined && renderer) code.replaceChildren(renderer.sanitize(markup));
}

/**
 * The language of a block of code, in small letters; empty if it names none. @param {Element |
 * null} code
 */
function languageOf(code) {
  return code?.className.replace('language-', '').toLowerCase() ?? '';
}

/**
 * A line above a block of code with its language, and buttons that wrap and copy it. @param
 * {HTMLPreElement} pre
 */
function addFrame(pre) {
  const frame = document.createElement('div');
  frame.className = 'code-frame';
  frame.dir = 'ltr';
  const bar = document.createElement('div');
  bar.className = 'code-bar';
  const language = languageOf(pre.querySelector('code')) || 'text';
  const label = document.createElement('span');
  label.textContent = language;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy-code';
  button.textContent = 'Copy';
  bar.append(label, wrapButton(), button);
  pre.tabIndex = 0; // to be scrolled with the keyboard
  pre.setAttribute('aria-label', `Code, ${language}`);
  pre.setAttribute('role', 'region');
  pre.replaceWith(frame);
  frame.append(bar, pre);
}

/** @param {HTMLTableElement} table */
function addScroller(table) {
  const scroller = document.createElement('div');
  scroller.className = 'table-scroller';
  scroller.tabIndex = 0;
  scroller.setAttribute('role', 'region');
  scroller.setAttribute('aria-label', 'Table');
  table.replaceWith(scroller);
  scroller.append(table);
}

customElements.define('markdown-text', MarkdownText);
