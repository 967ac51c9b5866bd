import DOMPurify from 'dompurify';
import { Lexer, Marked, Tokenizer } from 'marked';

/** @typedef {import('marked').Links} Links the definitions of links, by name */
/** @typedef {import('marked').Token} Token */
/** @typedef {import('marked').Tokens.Table} Table */

/** What text needs: no forms, media, styles or ids. */
const TAGS =
  'a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i img li ol p pre s span strong sub sup table tbody td th thead tr ul'.split(
    ' ',
  );
const ATTRIBUTES = ['align', 'alt', 'class', 'href', 'src', 'start', 'title'];

/**
 * The classes of an element, where it may have any: those that the style sheet or the frame of a
 * block needs.
 */
const CLASSES = /** @type {Record<string, RegExp>} */ ({
  CODE: /^language-[\w+#.-]+$/,
  SPAN: /^(?:task(?: done)?|off-screen|hljs-[\w -]+)$/,
});

const ALIGNMENT = /^(?:left|right|center)$/;

const WEB = /^(?:https?|mailto):/i;
const IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,/i;

const TOO_LARGE = 'This part is too large to be laid out. It is shown as it was written.';

const marked = new Marked({
  gfm: true,
  breaks: true, // a model that writes plain text means its lines
  renderer: {
    /** HTML in a text is shown as text. */
    html({ text }) {
      return escapeMarkup(text);
    },
    /** A box that nobody can tick. */
    checkbox({ checked }) {
      const [name, word] = checked ? ['task done', 'Done'] : ['task', 'To do'];
      return `<span class="${name}"><span class="off-screen">${word}:</span></span> `;
    },
    /** @returns {string | false} false for a block of code that is one */
    code({ text, ...token }) {
      if (!('isTooLarge' in token)) return false;
      return `<p><em>${TOO_LARGE}</em></p><pre><code>${escapeMarkup(text)}</code></pre>`;
    },
    /** Loading a remote image would leak data to its server, so it becomes a link. */
    image({ href, text }) {
      if (IMAGE.test(href)) return `<img src="${escapeMarkup(href)}" alt="${escapeMarkup(text)}">`;
      const label = escapeMarkup(text || href);
      return `<a href="${escapeMarkup(href)}" title="Image, not loaded">🖼 ${label}</a>`;
    },
  },
});

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.nodeName === 'A') {
    if (WEB.test(node.getAttribute('href') ?? '')) {
      node.setAttribute('target', '_blank');
      node.setAttribute('rel', 'noopener noreferrer');
    } else node.removeAttribute('href');
  }
  if (node.nodeName === 'IMG' && !IMAGE.test(node.getAttribute('src') ?? '')) node.remove();
  if (!CLASSES[node.nodeName]?.test(node.getAttribute('class') ?? '')) node.removeAttribute('class');
  if (!ALIGNMENT.test(node.getAttribute('align') ?? '')) node.removeAttribute('align');
});

/** Lists and quotes in one another. What is deeper is shown as it was written. */
const MAX_DEPTH = 16;

/**
 * Characters of a paragraph, item or cell. A longer one is shown as it was written: the time that
 * emphasis takes grows faster than the text.
 */
const MAX_RUN = 5000;

/** Columns and cells of a table, and lines of a list or of HTML, without a blank line between. */
const [MAX_COLUMNS, MAX_CELLS, MAX_LINES] = [100, 20_000, 2000];

/** Leaves what would take too long to be laid out as it was written (S-76). */
class BoundedTokenizer extends Tokenizer {
  /** @override @param {string} source */
  table(source) {
    const rule = lineFrom(source, source.indexOf('\n') + 1);
    if (!/^[\t |:-]+$/.test(rule)) return super.table(source);
    const raw = untilBlank(source);
    const columns = rule.split('|').length;
    const isSmall = columns <= MAX_COLUMNS && columns * linesOf(raw) <= MAX_CELLS;
    if (isSmall || !this.rules.block.table.test(lineFrom(source, 0, 2))) return super.table(source);
    return asWritten(raw);
  }

  /** @override @param {string} source */
  list(source) {
    const isList = /^ {0,3}(?:[*+-]|\d{1,9}[.)])[\t\n ]/.test(source);
    const raw = isList ? untilBlank(source) : '';
    return linesOf(raw) > MAX_LINES ? asWritten(raw) : super.list(source);
  }

  /** @override @param {string} source */
  html(source) {
    const raw = /^ {0,3}</.test(source) ? untilBlank(source) : '';
    return linesOf(raw) > MAX_LINES ? asWritten(raw) : super.html(source);
  }
}

/** @param {string} raw @returns {never} a block of code, whatever it would be */
function asWritten(raw) {
  return /** @type {never} */ ({ type: 'code', raw, text: raw.trim(), isTooLarge: true });
}

/** @param {string} text */
function untilBlank(text) {
  const blank = text.search(/\n[\t ]*(?:\n|$)/);
  return blank < 0 ? text : text.slice(0, blank + 1);
}

/** @param {string} text */
function linesOf(text) {
  return text.split('\n').length;
}

/** Lines of a text. @param {string} text @param {number} start @param {number} [count] */
function lineFrom(text, start, count = 1) {
  let end = start;
  for (let line = 0; line < count && end >= 0; line++) end = text.indexOf('\n', line === 0 ? end : end + 1);
  return text.slice(start, end < 0 ? text.length : end);
}

/** Splits a text into tokens, in a short time whatever the text is. */
class BoundedLexer extends Lexer {
  #depth = 0;

  constructor() {
    super({ ...marked.defaults, tokenizer: new BoundedTokenizer() });
  }

  /**
   * @override @template {Token[]} T @param {string} source @param {T} tokens @param {boolean}
   * [isClipped] @returns {T}
   */
  blockTokens(source, tokens = /** @type {T} */ (/** @type {Token[]} */ ([])), isClipped) {
    if (this.#depth === MAX_DEPTH) return asText(source, tokens);
    this.#depth++;
    super.blockTokens(source, tokens, isClipped);
    this.#depth--;
    return tokens;
  }

  /** @override @param {string} source @param {Token[]} tokens */
  inlineTokens(source, tokens = []) {
    return source.length > MAX_RUN ? asText(source, tokens) : super.inlineTokens(source, tokens);
  }
}

/** @template {Token[]} T @param {string} text @param {T} tokens */
function asText(text, tokens) {
  tokens.push({ type: 'text', raw: text, text, escaped: false });
  return tokens;
}

/**
 * The top-level blocks of a Markdown text. @param {string} text with line feeds only @param {Links}
 * links receives the definitions of links
 */
export function blocksOf(text, links) {
  const lexer = new BoundedLexer();
  lexer.tokens.links = links;
  lexer.blockTokens(text, lexer.tokens);
  let start = 0;
  const blocks = lexer.tokens.map(({ type, raw }) => {
    const block = { type, source: raw, start };
    start += raw.length;
    return block;
  });
  return blocks.filter(({ type }) => type !== 'space' && type !== 'def');
}

/**
 * One block as sanitized nodes (S-27).
 * @param {string} source @param {Links} links @returns {DocumentFragment}
 */
export function renderBlock(source, links) {
  const lexer = new BoundedLexer();
  lexer.tokens.links = links;
  return sanitize(marked.parser(lexer.lex(source)));
}

/**
 * Markup as nodes without anything that could run or load (S-27). @param {string} markup @returns
 * {DocumentFragment}
 */
export function sanitize(markup) {
  return DOMPurify.sanitize(markup, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}

/** @param {string} text */
function escapeMarkup(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
