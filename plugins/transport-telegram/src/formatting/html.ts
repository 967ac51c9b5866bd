import type { MessageEntity } from 'grammy/types';
import type { Formatted } from './formatted.js';

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const CHARACTERS = Object.fromEntries(Object.entries(ESCAPES).map(([char, escaped]) => [escaped, char]));

/** A text as the HTML of the Bot API (`parse_mode: HTML`). Entities must nest. */
export function htmlOf({ text, entities }: Formatted): string {
  const pieces: string[] = [];
  const open: { readonly end: number; readonly tag: string }[] = [];
  let at = 0;
  const addUntil = (end: number) => {
    pieces.push(escapeHtml(text.slice(at, end)));
    at = end;
  };
  const closeUntil = (position: number) => {
    for (let last = open.at(-1); last && last.end <= position; last = open.at(-1)) {
      addUntil(last.end);
      pieces.push(last.tag);
      open.pop();
    }
  };
  for (const entity of entities) {
    const [begin, end] = tagsOf(entity);
    closeUntil(entity.offset);
    addUntil(entity.offset);
    pieces.push(begin);
    open.push({ end: entity.offset + entity.length, tag: end });
  }
  closeUntil(text.length);
  addUntil(text.length);
  return pieces.join('');
}

/** The text of such HTML without its formatting. */
export function plainOf(html: string): string {
  return html.replace(/<[^<>]*>/g, '').replace(/&(?:amp|lt|gt|quot);/g, (escaped) => CHARACTERS[escaped] ?? escaped);
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (char) => ESCAPES[char] ?? char);
}

function tagsOf(entity: MessageEntity): readonly [begin: string, end: string] {
  switch (entity.type) {
    case 'bold':
      return ['<b>', '</b>'];
    case 'italic':
      return ['<i>', '</i>'];
    case 'strikethrough':
      return ['<s>', '</s>'];
    case 'code':
      return ['<code>', '</code>'];
    case 'blockquote':
      return ['<blockquote>', '</blockquote>'];
    case 'text_link':
      return [`<a href="${escapeHtml(entity.url)}">`, '</a>'];
    case 'pre':
      return entity.language === undefined
        ? ['<pre>', '</pre>']
        : [`<pre><code class="language-${escapeHtml(entity.language)}">`, '</code></pre>'];
    default:
      return ['', ''];
  }
}
