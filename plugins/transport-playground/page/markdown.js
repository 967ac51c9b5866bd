import DOMPurify from 'dompurify';
import { Marked } from 'marked';

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

const marked = new Marked({
  gfm: true,
  breaks: false,
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

/** The top-level blocks of a Markdown text. @param {string} text */
export function blocksOf(text) {
  const tokens = marked.lexer(text);
  return tokens
    .filter(({ type }) => type !== 'space' && type !== 'def')
    .map((token) => ({ source: token.raw, token, links: tokens.links }));
}

/**
 * One block as sanitized nodes (S-27).
 * @param {ReturnType<typeof blocksOf>[number]} block @returns {DocumentFragment}
 */
export function renderBlock({ token, links }) {
  return sanitize(marked.parser(Object.assign([token], { links })));
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
