import { type Formatted, FormattedText } from './formatted.js';
import { formatInline } from './inline.js';
import { isTableStart, readTable } from './table.js';

/** A line such as "``` text ```" is code in a paragraph: what follows backticks has none. */
const FENCE = /^(\s{0,12})(~{3,}|`{3,}(?=[^`]*$)) {0,3}([^`\s]{0,40})/;
const HEADING = /^ {0,3}#{1,6} +/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^([ \t]{0,40})[-*+] +(\[[ xX]\] )?/;
const RULE_CHARS = new Set(['-', '*', '_']);
const RULE = '———';
const BULLET = '• ';

/**
 * Formats the Markdown of a model as Telegram shows it: bold, italic, struck out, code, links,
 * quotes, lists, tables as fixed-width text. What Telegram has no form for stays text. Takes the
 * beginning of a text, too, whose last code block has no end yet. The work is linear.
 */
export function formatMarkdown(markdown: string): Formatted {
  const { text, entities } = new BlockScanner(markdown.replaceAll('\r\n', '\n').split('\n')).run();
  const kept = text.trimEnd();
  if (kept.trim() === '') return { text: markdown.trim(), entities: [] };
  return { text: kept, entities: entities.flatMap((entity) => clip(entity, kept.length)) };
}

function clip<T extends { readonly offset: number; readonly length: number }>(entity: T, end: number): readonly T[] {
  const length = Math.min(entity.length, end - entity.offset);
  return length > 0 ? [{ ...entity, length }] : [];
}

/** Reads lines from the first to the last. */
class BlockScanner {
  readonly #lines: readonly string[];
  readonly #out = new FormattedText();
  #at = 0;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  run(): Formatted {
    while (this.#at < this.#lines.length) {
      const line = this.#lines[this.#at] ?? '';
      if (this.#out.length === 0 && line.trim() === '') {
        this.#at++;
        continue;
      }
      if (this.#out.length > 0) this.#out.add('\n');
      this.#readBlock(line);
    }
    return this.#out.result;
  }

  #readBlock(line: string): void {
    const fence = FENCE.exec(line);
    if (fence) this.#readCode(fence[1] ?? '', fence[2] ?? '', fence[3] ?? '');
    else if (QUOTE.test(line)) this.#readQuote();
    else if (isTableStart(this.#lines, this.#at)) this.#readTable();
    else if (startsBlock(line)) this.#addLine(this.#lines[this.#at++] ?? '');
    else this.#readParagraph();
  }

  #readCode(indent: string, fence: string, language: string): void {
    const start = this.#out.length;
    const lines: string[] = [];
    for (this.#at++; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at] ?? '';
      if (isClosing(line, fence)) {
        this.#at++;
        break;
      }
      lines.push(line.startsWith(indent) ? line.slice(indent.length) : line.trimStart());
    }
    this.#out.add(lines.join('\n'));
    this.#out.format(start, language === '' ? { type: 'pre' } : { type: 'pre', language });
  }

  /** Quotes do not nest in Telegram: deeper marks are dropped. */
  #readQuote(): void {
    const start = this.#out.length;
    for (let isFirst = true; this.#at < this.#lines.length; this.#at++, isFirst = false) {
      let line = this.#lines[this.#at] ?? '';
      if (!QUOTE.test(line)) break;
      while (QUOTE.test(line)) line = line.replace(QUOTE, '');
      if (!isFirst) this.#out.add('\n');
      this.#addLine(line);
    }
    this.#out.format(start, { type: 'blockquote' });
  }

  #readTable(): void {
    const start = this.#out.length;
    const { text, next } = readTable(this.#lines, this.#at);
    this.#at = next;
    this.#out.add(text).format(start, { type: 'pre' });
  }

  /** Lines up to an empty one or another block: emphasis may go over their ends. */
  #readParagraph(): void {
    const first = this.#at++;
    while (this.#at < this.#lines.length) {
      const line = this.#lines[this.#at] ?? '';
      if (line.trim() === '' || FENCE.test(line) || QUOTE.test(line) || startsBlock(line)) break;
      if (isTableStart(this.#lines, this.#at)) break;
      this.#at++;
    }
    const lines = this.#lines.slice(first, this.#at).map((line) => line.trimEnd());
    this.#out.addFormatted(formatInline(lines.join('\n')));
  }

  /** A line that is a block of its own: a heading, an item, a rule, or one line of a quote. */
  #addLine(line: string): void {
    if (isRule(line)) return void this.#out.add(RULE);
    const heading = HEADING.exec(line);
    if (heading) {
      const start = this.#out.length;
      this.#out.addFormatted(formatInline(withoutClosingMarks(line.slice(heading[0].length))));
      return void this.#out.format(start, { type: 'bold' });
    }
    const item = ITEM.exec(line);
    if (!item) return void this.#out.addFormatted(formatInline(line.trimEnd()));
    const [mark, indent = '', box] = item;
    this.#out.add(indent).add(box === undefined ? BULLET : box.includes(' ]') ? '☐ ' : '☑ ');
    this.#out.addFormatted(formatInline(line.slice(mark.length).trimEnd()));
  }
}

function startsBlock(line: string): boolean {
  return HEADING.test(line) || ITEM.test(line) || isRule(line) || /^[ \t]{0,40}\d{1,9}[.)] /.test(line);
}

/** Three or more `-`, `*` or `_`, and nothing else but spaces. */
function isRule(line: string): boolean {
  const marks = line.replaceAll(' ', '');
  const [first = ''] = marks;
  return marks.length >= 3 && RULE_CHARS.has(first) && marks === first.repeat(marks.length);
}

function isClosing(line: string, fence: string): boolean {
  const mark = line.trim();
  return mark.length >= fence.length && mark === fence.charAt(0).repeat(mark.length);
}

/** `Title ##` without the marks at its end. */
function withoutClosingMarks(heading: string): string {
  const text = heading.trimEnd();
  let end = text.length;
  while (text.charAt(end - 1) === '#') end--;
  return text.charAt(end - 1) === ' ' ? text.slice(0, end).trimEnd() : text;
}
