import { Writable } from 'node:stream';

/** The part of a terminal that is written to. */
interface TerminalOutput extends NodeJS.WritableStream {
  readonly columns?: number;
}

/**
 * What readline writes to: the terminal, while there is a prompt. During an answer it is silent:
 * readline echoes keys, and writes its line again when the size of the terminal changes, wherever
 * the cursor is.
 */
export class PromptOutput extends Writable {
  readonly isTTY = true;
  isSilent = false;
  readonly #terminal: TerminalOutput;

  constructor(terminal: TerminalOutput) {
    super({ decodeStrings: false });
    this.#terminal = terminal;
    terminal.on('resize', () => this.isSilent || this.emit('resize'));
  }

  get columns(): number | undefined {
    return this.#terminal.columns;
  }

  override _write(text: string, _: string, done: () => void): void {
    if (!this.isSilent) this.#terminal.write(text);
    done();
  }
}
