import type { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { argumentsToDecide } from './arguments-to-decide.js';
import type { ChatEvent } from './conversation.js';
import { printable } from './printable.js';
import { WordWrap } from './word-wrap.js';

/** Characters of a tool's arguments or result that are shown. */
const MAX_SHOWN = 200;
/** Milliseconds until the spinner is shown, and between its pictures. */
const SPINNER = { delay: 200, interval: 80, frames: '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏' } as const;
const DEFAULT_COLUMNS = 80;

/** Where answers are shown: a terminal, or a pipe. */
export interface ChatOutput {
  readonly output: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly errors: Writable;
}

/**
 * Shows the events of answers. On a terminal there is a spinner while nothing comes, lines break
 * between words, and each answer ends with its tokens and time. A pipe receives plain text.
 */
export class AnswerView {
  readonly #out: ChatOutput;
  readonly #isTerminal: boolean;
  readonly #columns = () => this.#out.output.columns ?? DEFAULT_COLUMNS;
  #wrap: WordWrap;
  /** Whether the last line is text that may go on. */
  #inText = false;
  /** Whether the answer has shown something. */
  #hasShown = false;
  #usage: string | undefined;
  #began = 0;
  #spinner: NodeJS.Timeout | undefined;
  #isSpinning = false;

  constructor(out: ChatOutput, isTerminal: boolean) {
    this.#out = out;
    this.#isTerminal = isTerminal;
    this.#wrap = this.#newWrap();
  }

  /** Shows that an answer is on its way. */
  begin(): void {
    this.#began = performance.now();
    this.#usage = undefined;
    this.#hasShown = false;
    this.#spin('thinking');
  }

  show(event: ChatEvent): void {
    this.#stopSpinning();
    if (event.kind !== 'usage') this.#hasShown = true;
    switch (event.kind) {
      case 'text':
        this.#text(event.text);
        break;
      case 'call':
        this.line(`→ ${event.name} ${truncate(event.input)}`);
        this.#spin(event.name);
        break;
      case 'result':
        this.line(`${event.isError ? '✗' : '←'} ${event.name}: ${truncate(event.content)}`);
        this.#spin('thinking');
        break;
      case 'approval':
        this.line(`? ${event.name} ${argumentsToDecide(event.input)} needs approval`);
        break;
      case 'cut':
        this.line(`(the answer was cut: ${event.reason})`);
        break;
      case 'note':
        this.error(event.text);
        break;
      case 'usage':
        this.#usage = `${event.input} tokens in, ${event.output} out`;
        break;
    }
  }

  /** Shows a message of an earlier turn, shortened. */
  past(author: string, text: string): void {
    this.line(`${author} › ${truncate(text)}`);
  }

  /** Ends the answer. @param asks whether a request for approval follows. */
  end(asks = false): void {
    this.#stopSpinning();
    this.#endText();
    if (!this.#hasShown && !asks && this.#isTerminal) this.line('(the answer is empty)');
    if (!this.#isTerminal || this.#usage === undefined) return;
    const seconds = ((performance.now() - this.#began) / 1000).toFixed(1);
    this.line(`(${this.#usage}, ${seconds} s)`);
  }

  /** Writes side information on a line of its own. */
  line(text: string): void {
    this.#stopSpinning();
    this.#endText();
    this.#out.output.write(`${this.paint('dim', this.#wrapped(printable(text)))}\n`);
  }

  error(message: string): void {
    this.#stopSpinning();
    this.#endText();
    this.#out.errors.write(
      this.#isTerminal ? `${this.paint('red', this.#wrapped(`✗ ${printable(message)}`))}\n` : `plugboard chat: ${message}\n`,
    );
  }

  /** Styled if the output is a terminal and `NO_COLOR` is not set. */
  paint(format: 'bold' | 'dim' | 'red', text: string): string {
    return styleText(format, text, { stream: this.#out.output });
  }

  /** A text of whole lines, broken between words. */
  #wrapped(text: string): string {
    if (!this.#isTerminal) return text;
    let wrapped = '';
    new WordWrap((piece) => (wrapped += piece), this.#columns).write(text);
    return wrapped;
  }

  #text(text: string): void {
    if (!this.#inText && text.trim() === '') return;
    this.#inText = true;
    if (this.#isTerminal) this.#wrap.write(printable(text));
    else this.#out.output.write(text);
  }

  #endText(): void {
    if (!this.#inText) return;
    this.#inText = false;
    this.#out.output.write('\n');
    this.#wrap = this.#newWrap();
  }

  #spin(what: string): void {
    if (!this.#isTerminal) return;
    let at = 0;
    const draw = () => {
      this.#isSpinning = true;
      const frame = SPINNER.frames[at++ % SPINNER.frames.length];
      this.#out.output.write(`\r\x1b[K${this.paint('dim', `${frame} ${printable(what)}`)}`);
      this.#spinner = setTimeout(draw, SPINNER.interval);
    };
    this.#spinner = setTimeout(draw, SPINNER.delay);
  }

  #stopSpinning(): void {
    clearTimeout(this.#spinner);
    if (this.#isSpinning) this.#out.output.write('\r\x1b[K');
    this.#isSpinning = false;
  }

  #newWrap(): WordWrap {
    return new WordWrap((text) => this.#out.output.write(text), this.#columns);
  }
}

function truncate(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return flat.length > MAX_SHOWN ? `${flat.slice(0, MAX_SHOWN).toWellFormed()}…` : flat;
}
