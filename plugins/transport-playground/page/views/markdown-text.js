import { wrapButton } from './wrap.js';

/** @type {Promise<typeof import('../markdown.js')> | undefined} */
let loading;
/** @type {typeof import('../markdown.js') | undefined} */
let renderer;

/** @type {Promise<typeof import('../highlight.js')> | undefined} */
let highlighter;

/** Longer blocks of code stay without colours: they would hold the page up. In characters. */
const MAX_COLOURED = 20_000;

/** How long the last block of a text must stay the same before it is coloured, in milliseconds. */
const QUIET_TIME = 150;

/**
 * Renders a model's text as Markdown. Blocks that did not change keep their nodes: streaming stays
 * cheap, and a selection survives. The text is shown unrendered until the renderer is loaded. Each
 * time the text is rendered anew, `resize` tells it: its height may have changed.
 */
class MarkdownText extends HTMLElement {
  #text = '';
  /** @type {string[]} */
  #sources = [];
  #isPending = false;
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
    requestAnimationFrame(() => {
      this.#isPending = false;
      this.#render();
    });
  }

  #showPlain() {
    const paragraph = document.createElement('p');
    paragraph.className = 'plain';
    paragraph.textContent = this.#text;
    this.replaceChildren(paragraph);
  }

  #render() {
    if (!renderer) return;
    const blocks = renderer.blocksOf(this.#text);
    if (this.#sources.length === 0) this.replaceChildren();
    blocks.forEach((block, at) => {
      if (this.#sources[at] === block.source) return;
      this.#sources[at] = block.source;
      const wrapper = document.createElement('div');
      wrapper.className = 'block';
      wrapper.append(/** @type {typeof import('../markdown.js')} */ (renderer).renderBlock(block));
      for (const pre of wrapper.querySelectorAll('pre')) addFrame(pre);
      for (const table of wrapper.querySelectorAll('table')) addScroller(table);
      const old = this.children[at];
      if (old) old.replaceWith(wrapper);
      else this.append(wrapper);
    });
    this.#sources.length = blocks.length;
    while (this.children.length > blocks.length) this.lastElementChild?.remove();
    for (const block of [...this.children].slice(0, -1)) colour(block);
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => colour(this), QUIET_TIME); // the last block may still grow
    this.dispatchEvent(new Event('resize', { bubbles: true }));
  }
}

/** Colours the code below an element, once. @param {Element} element */
function colour(element) {
  for (const code of element.querySelectorAll('pre > code:not([data-coloured])')) {
    const text = code.textContent;
    code.setAttribute('data-coloured', '');
    if (code.className !== '' && text.length <= MAX_COLOURED) void colourCode(code, text, languageOf(code));
  }
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
