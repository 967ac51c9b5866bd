/** A text with its entities, as Telegram reads it. */
export interface ParsedText {
  readonly text: string;
  readonly entities: readonly {
    readonly type: string;
    readonly offset: number;
    readonly length: number;
    readonly url?: string;
  }[];
}

const TAGS: Readonly<Record<string, string>> = {
  b: 'bold',
  i: 'italic',
  s: 'strikethrough',
  code: 'code',
  pre: 'pre',
  a: 'text_link',
  blockquote: 'blockquote',
};
const CHARACTERS: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };

/** Reads the HTML of the Bot API as strictly as Telegram does. @throws Error with its words. */
export function parseHtml(html: string): ParsedText {
  const open: { readonly tag: string; readonly offset: number; readonly url: string | undefined }[] = [];
  const entities: { type: string; offset: number; length: number; url?: string }[] = [];
  let text = '';
  let rest = html;
  const take = (pattern: RegExp) => {
    const found = pattern.exec(rest);
    rest = rest.slice(found?.[0].length ?? 0);
    return found;
  };
  while (rest !== '') {
    const plain = take(/^[^<>&]+/);
    if (plain) {
      text += plain[0];
      continue;
    }
    const escaped = take(/^&(amp|lt|gt|quot);/);
    if (escaped) {
      text += CHARACTERS[escaped[1] ?? ''];
      continue;
    }
    const begin = take(/^<([a-z]+)(?: (?:href="([^"<>]*)"|class="language-[^"<>]*"))?>/);
    if (begin && TAGS[begin[1] ?? '']) {
      open.push({ tag: begin[1] ?? '', offset: text.length, url: begin[2] === undefined ? undefined : parseHtml(begin[2]).text });
      continue;
    }
    const end = take(/^<\/([a-z]+)>/);
    const last = open.pop();
    if (!end || last?.tag !== end[1]) throw new Error(`can't parse entities: unexpected "${(end?.[0] ?? rest).slice(0, 20)}"`);
    const { tag, offset, url } = last ?? { tag: '', offset: 0, url: undefined };
    const length = text.length - offset;
    if (length > 0) entities.push({ type: TAGS[tag] ?? tag, offset, length, ...(url !== undefined && { url }) });
  }
  if (open.length > 0)
    throw new Error(`can't parse entities: can't find end tag corresponding to start tag "${open.at(-1)?.tag}"`);
  return { text, entities };
}
