import { type EntityKind, type Formatted, inOrder } from './formatted.js';
import { readLink } from './link.js';

const ESCAPABLE = new Set('!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~');
const EMPHASIS = new Set(['*', '_', '~']);
const PUNCTUATION = /[\p{P}\p{S}]/u;
/** Deeper emphasis and links stay text. */
const MAX_DEPTH = 16;
const LINE_BREAK = /^<br ?\/?>/i;

/** A run of `*`, `_` or `~` that may begin emphasis. */
interface Opener {
  readonly mark: string;
  readonly piece: number;
}

/** A `[` or `![` that may begin a link. */
interface Bracket {
  readonly piece: number;
  readonly isImage: boolean;
  /** Openers before the bracket, which a closer inside of it does not reach. */
  readonly openers: number;
}

/** Formats emphasis, code spans and links of a paragraph. What closes nothing stays as written. */
export function formatInline(markdown: string): Formatted {
  return new InlineScanner(markdown).run();
}

/**
 * Reads once from left to right. Every mark is a piece of its own, so that it can be taken away
 * when its other half is found; each is pushed and popped at most once, so the work is linear.
 */
class InlineScanner {
  readonly #source: string;
  #at = 0;
  #pieces: string[] = [];
  readonly #spans: { from: number; to: number; kind: EntityKind }[] = [];
  readonly #openers: Opener[] = [];
  readonly #open = new Map<string, number>();
  readonly #brackets: Bracket[] = [];
  readonly #ticks: BacktickRuns;

  constructor(source: string) {
    this.#source = source;
    this.#ticks = new BacktickRuns(source);
  }

  run(): Formatted {
    let plainFrom = 0;
    const flush = () => {
      if (this.#at > plainFrom) this.#pieces.push(this.#source.slice(plainFrom, this.#at));
    };
    while (this.#at < this.#source.length) {
      const char = this.#source.charAt(this.#at);
      if (!MARKS.has(char)) {
        this.#at++;
        continue;
      }
      flush();
      this.#readMark(char);
      plainFrom = this.#at;
    }
    flush();
    return this.#assemble();
  }

  /** Reads a mark at the position, and moves behind it. */
  #readMark(char: string): void {
    switch (char) {
      case '\\':
        this.#readEscape();
        break;
      case '`':
        this.#readCode();
        break;
      case '<':
        this.#readAngle();
        break;
      case '!':
        this.#readBang();
        break;
      case '[':
        this.#openBracket('[', false);
        break;
      case ']':
        this.#closeBracket();
        break;
      default:
        this.#readEmphasis(char);
    }
  }

  #readEscape(): void {
    const next = this.#source.charAt(this.#at + 1);
    const isHardBreak = next === '\n';
    if (!isHardBreak && !ESCAPABLE.has(next)) return void this.#plain('\\');
    this.#pieces.push(next);
    this.#at += 2;
  }

  #readCode(): void {
    const length = runLength(this.#source, this.#at);
    const end = this.#ticks.next(length, this.#at + length);
    if (end === undefined) return void this.#plain('`'.repeat(length));
    const raw = this.#source.slice(this.#at + length, end).replaceAll('\n', ' ');
    const isPadded = raw.startsWith(' ') && raw.endsWith(' ') && raw.trim() !== '';
    const piece = this.#pieces.push(isPadded ? raw.slice(1, -1) : raw) - 1;
    this.#spans.push({ from: piece, to: piece + 1, kind: { type: 'code' } });
    this.#at = end + length;
  }

  /** `<br>`, or an address between angle brackets: Telegram finds the link itself. */
  #readAngle(): void {
    const isBreak = LINE_BREAK.exec(this.#source.slice(this.#at, this.#at + 6));
    if (isBreak) {
      this.#pieces.push('\n');
      this.#at += isBreak[0].length;
      return;
    }
    let end = this.#at + 1;
    while (end < this.#source.length && !/[<>\s]/.test(this.#source.charAt(end))) end++;
    const inside = this.#source.slice(this.#at + 1, end);
    if (this.#source.charAt(end) !== '>' || !/^(?:https?:\/\/|mailto:)./i.test(inside)) return void this.#plain('<');
    this.#pieces.push(inside);
    this.#at = end + 1;
  }

  #readBang(): void {
    if (this.#source.charAt(this.#at + 1) === '[') return void this.#openBracket('![', true);
    this.#plain('!');
  }

  #openBracket(text: string, isImage: boolean): void {
    if (this.#brackets.length < MAX_DEPTH)
      this.#brackets.push({ piece: this.#pieces.length, isImage, openers: this.#openers.length });
    this.#plain(text);
  }

  #closeBracket(): void {
    const bracket = this.#brackets.pop();
    const link = bracket && readLink(this.#source, this.#at + 1);
    if (!link) return void this.#plain(']');
    this.#at = link.end;
    this.#dropOpeners(bracket.openers);
    this.#pieces[bracket.piece] = '';
    const from = bracket.piece + 1;
    if (this.#pieces.slice(from).every((piece) => piece.trim() === ''))
      this.#pieces.push(bracket.isImage ? 'image' : link.address);
    if (link.url === undefined) this.#pieces.push(` (${link.address})`);
    else this.#spans.push({ from, to: this.#pieces.length, kind: { type: 'text_link', url: link.url } });
    // A link contains no link.
    if (!bracket.isImage) this.#brackets.length = 0;
  }

  #readEmphasis(mark: string): void {
    const start = this.#at;
    const length = runLength(this.#source, start);
    const piece = this.#pieces.length;
    this.#plain(mark.repeat(length));
    if (mark === '~' && length !== 2) return;
    const { canOpen, canClose } = flanks(this.#source, start, length);
    if (canClose) this.#close(mark, piece);
    if (canOpen && this.#pieces[piece] !== '' && this.#openers.length < MAX_DEPTH) {
      this.#openers.push({ mark, piece });
      this.#open.set(mark, (this.#open.get(mark) ?? 0) + 1);
    }
  }

  /** Pairs a run with the openers of its mark, the nearest first. Openers between are text. */
  #close(mark: string, piece: number): void {
    const bottom = this.#brackets.at(-1)?.openers ?? 0;
    for (let left = this.#pieces[piece]?.length ?? 0; left > 0; ) {
      if ((this.#open.get(mark) ?? 0) === 0 || this.#openers.length <= bottom) return;
      const opener = this.#openers.at(-1);
      if (!opener) return;
      if (opener.mark !== mark) {
        this.#dropOpeners(this.#openers.length - 1);
        continue;
      }
      const available = this.#pieces[opener.piece]?.length ?? 0;
      const used = available >= 2 && left >= 2 ? 2 : 1;
      this.#pieces[opener.piece] = mark.repeat(available - used);
      left -= used;
      this.#pieces[piece] = mark.repeat(left);
      this.#spans.push({ from: opener.piece + 1, to: piece, kind: { type: kindOf(mark, used) } });
      if (available === used) this.#dropOpeners(this.#openers.length - 1);
    }
  }

  #dropOpeners(length: number): void {
    while (this.#openers.length > length) {
      const mark = this.#openers.pop()?.mark ?? '';
      this.#open.set(mark, (this.#open.get(mark) ?? 1) - 1);
    }
  }

  /** Adds a piece as it is written. */
  #plain(text: string): void {
    this.#pieces.push(text);
    this.#at += text.length;
  }

  #assemble(): Formatted {
    const offsets: number[] = [0];
    for (const piece of this.#pieces) offsets.push((offsets.at(-1) ?? 0) + piece.length);
    const text = this.#pieces.join('');
    const entities = this.#spans.map(({ from, to, kind }) => {
      const offset = offsets[from] ?? 0;
      return { ...kind, offset, length: (offsets[to] ?? 0) - offset };
    });
    return { text, entities: inOrder(entities.filter(({ length }) => length > 0)) };
  }
}

const MARKS = new Set(['\\', '`', '<', '!', '[', ']', ...EMPHASIS]);

function kindOf(mark: string, used: number): 'bold' | 'italic' | 'strikethrough' {
  if (mark === '~') return 'strikethrough';
  return used === 2 ? 'bold' : 'italic';
}

/** Whether a run can begin or end emphasis (CommonMark 6.2). `_` does neither inside a word. */
function flanks(source: string, start: number, length: number): { readonly canOpen: boolean; readonly canClose: boolean } {
  const before = source.charAt(start - 1);
  const after = source.charAt(start + length);
  const [spaceBefore, spaceAfter] = [before.trim() === '', after.trim() === ''];
  const [markBefore, markAfter] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
  const left = !spaceAfter && (!markAfter || spaceBefore || markBefore);
  const right = !spaceBefore && (!markBefore || spaceAfter || markAfter);
  if (source.charAt(start) !== '_') return { canOpen: left, canClose: right };
  return { canOpen: left && (!right || markBefore), canClose: right && (!left || markAfter) };
}

/** How often the character at the position repeats. */
function runLength(source: string, start: number): number {
  const char = source.charAt(start);
  let end = start + 1;
  while (source.charAt(end) === char) end++;
  return end - start;
}

/** Where runs of backticks are, by their length. */
class BacktickRuns {
  readonly #positions = new Map<number, number[]>();

  constructor(source: string) {
    for (let at = source.indexOf('`'); at >= 0; ) {
      const length = runLength(source, at);
      const positions = this.#positions.get(length) ?? [];
      positions.push(at);
      this.#positions.set(length, positions);
      at = source.indexOf('`', at + length);
    }
    for (const positions of this.#positions.values()) positions.reverse();
  }

  /** The first run of a length at or after a position. Positions must be asked for in order. */
  next(length: number, from: number): number | undefined {
    const positions = this.#positions.get(length);
    while (positions !== undefined && (positions.at(-1) ?? from) < from) positions.pop();
    return positions?.at(-1);
  }
}
