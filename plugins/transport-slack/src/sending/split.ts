/** Characters of one message, as UTF-16 units. */
export const MAX_TEXT = 12_000;
/** A part that is not the last has at least three quarters of that. */
export const MIN_PART = MAX_TEXT * 0.75;
/** A line that opens or closes a code block. */
const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)$/gm;
/** Mentions that notify a whole channel. */
const BROADCAST = /<!(?=channel|here|everyone|subteam)/g;

/**
 * The Markdown of an answer as Slack is given it: a text of a model must not notify everybody, so
 * `<!channel>` gets an invisible character.
 */
export function markdownOf(text: string): string {
  return text.replace(BROADCAST, '<\u200b!');
}

/**
 * Splits Markdown into messages: between paragraphs, lines or words of the last quarter. A code
 * block that is cut is closed, and opened again in the next message.
 */
export function splitMarkdown(text: string): readonly string[] {
  const parts: string[] = [];
  let rest = text.trim();
  while (rest.length > MAX_TEXT) {
    const fence = (cut: number) => openFence(rest.slice(0, cut));
    let cut = breakOf(rest, MAX_TEXT);
    let open = fence(cut);
    if (open !== undefined) {
      cut = breakOf(rest, MAX_TEXT - open.close.length - 1);
      open = fence(cut);
    }
    const part = rest.slice(0, cut).trimEnd();
    // Of a text that is not code, the next part begins with its first character.
    const next = open === undefined ? rest.slice(cut).trimStart() : rest.slice(cut).replace(/^\n/, '');
    parts.push(open === undefined ? part : `${part}\n${open.close}`);
    rest = open === undefined ? next : `${open.line}\n${next}`;
  }
  if (rest !== '' || parts.length === 0) parts.push(rest);
  return parts;
}

/** Where to cut: at most `limit`, and not within a surrogate pair. */
function breakOf(text: string, limit: number): number {
  for (const separator of ['\n\n', '\n', ' ']) {
    const found = text.lastIndexOf(separator, limit);
    if (found >= MIN_PART) return found;
  }
  return /[\udc00-\udfff]/.test(text[limit] ?? '') ? limit - 1 : limit;
}

/** The code block that is open at the end of a text: its first line, and what closes it. */
function openFence(text: string): { readonly line: string; readonly close: string } | undefined {
  let open: { readonly line: string; readonly close: string } | undefined;
  for (const [line, marks = '', info = ''] of text.matchAll(FENCE)) {
    if (open === undefined) open = { line: line.slice(0, 200), close: marks.slice(0, 200) };
    else if (marks.startsWith(open.close) && info.trim() === '') open = undefined;
  }
  return open;
}
