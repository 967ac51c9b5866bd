import { readFileSync } from 'node:fs';

/** A code block of a Markdown page. */
export interface CodeBlock {
  /** The first word after the fence: `yaml`, `ts`, `console` … */
  readonly language: string;
  /** The rest of that line: instructions for the test. */
  readonly note: string;
  readonly text: string;
  /** The file name: the note if it is one, else the comment in the first line. */
  readonly file: string | undefined;
  /** Line of the fence, for messages. */
  readonly line: number;
}

/** A Markdown page: its code blocks, tables, links and headings. */
export class Page {
  readonly text: string;
  readonly blocks: readonly CodeBlock[];
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

  /** The blocks in a language. */
  in(language: string): readonly CodeBlock[] {
    return this.blocks.filter((block) => block.language === language);
  }

  /**
   * The rows of the table whose first column has this heading, as cells without backticks.
   * @throws Error if there is none.
   */
  table(heading: string): readonly (readonly string[])[] {
    const rows = this.#prose.split('\n').map((line) => line.split(/(?<!\\)\|/).slice(1, -1));
    const cells = rows.map((row) => row.map((cell) => cell.trim().replaceAll('`', '')));
    const from = cells.findIndex(([first]) => first === heading);
    if (from < 0) throw new Error(`no table has the heading "${heading}"`);
    const length = cells.slice(from).findIndex((row) => row.length === 0);
    return cells.slice(from + 2, length < 0 ? undefined : from + length);
  }

  /** The targets of its links: paths or URLs, possibly with an anchor. */
  get links(): readonly string[] {
    return [...this.#prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  }

  /** The anchors of its headings, as GitHub makes them. */
  get anchors(): readonly string[] {
    return [...this.#prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );
  }
}
