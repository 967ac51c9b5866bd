import { readFileSync } from 'node:fs';

/** A block of code in a page of Markdown. */
export interface Block {
  /** The first word behind the fence: `yaml`, `ts`, `console` … */
  readonly language: string;
  /** What stands behind that word, for whoever checks the page. */
  readonly note: string;
  readonly text: string;
  /** The file that it is: the note where that is a file's name, else what a comment in its first line says. */
  readonly file: string | undefined;
  /** Of the fence, for messages. */
  readonly line: number;
}

/** A page of Markdown, taken apart as far as it can be held to its word. */
export class Page {
  readonly text: string;
  readonly blocks: readonly Block[];
  readonly #prose: string;

  constructor(path: string) {
    this.text = readFileSync(path, 'utf8');
    const fences = [...this.text.matchAll(/^```(\w*) ?([^\n]*)\n(.*?)^```$/gms)];
    this.blocks = fences.map(({ 1: language = '', 2: note = '', 3: text = '', index }) => ({
      language,
      note,
      text,
      file: /^[\w./-]+\.\w+$/.test(note) ? note : /^(?:\/\/|#) ([\w./-]*\.\w+)\n/.exec(text)?.[1],
      line: this.text.slice(0, index).split('\n').length,
    }));
    this.#prose = this.text.replaceAll(/^```.*?^```$/gms, '');
  }

  /** The blocks of a language. */
  in(language: string): readonly Block[] {
    return this.blocks.filter((block) => block.language === language);
  }

  /** The rows of the table whose first column has that heading, as cells without their backticks. @throws Error where there is none. */
  table(heading: string): readonly (readonly string[])[] {
    const rows = this.#prose.split('\n').map((line) => line.split(/(?<!\\)\|/).slice(1, -1));
    const cells = rows.map((row) => row.map((cell) => cell.trim().replaceAll('`', '')));
    const from = cells.findIndex(([first]) => first === heading);
    if (from < 0) throw new Error(`there is no table with the heading "${heading}"`);
    const length = cells.slice(from).findIndex((row) => row.length === 0);
    return cells.slice(from + 2, length < 0 ? undefined : from + length);
  }

  /** Where its links lead: a path or URL, with `#` and an anchor perhaps. */
  get links(): readonly string[] {
    return [...this.#prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  }

  /** What a link within it may lead to. */
  get anchors(): readonly string[] {
    return [...this.#prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );
  }
}
