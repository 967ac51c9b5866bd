import t from 'tap';
import { WordWrap } from '../src/chat/word-wrap.js';

// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal obeys them
const TOKEN = /\x1b\[\d+D|\x1b\[K|[^\x1b]/gu;

/** What a terminal of this width shows after these writes. */
function shown(columns: number, ...pieces: readonly string[]): string[] {
  const lines: string[][] = [[]];
  let column = 0;
  const wrap = new WordWrap(
    (text) => {
      for (const [token] of text.matchAll(TOKEN)) {
        const line = lines.at(-1) ?? [];
        if (token === '\n') {
          lines.push([]);
          column = 0;
        } else if (token === '\x1b[K') {
          line.length = column;
        } else if (token.startsWith('\x1b')) {
          column -= Number.parseInt(token.slice(2), 10);
        } else {
          line[column++] = token;
        }
      }
    },
    () => columns,
  );
  for (const piece of pieces) wrap.write(piece);
  return lines.map((line) => line.join(''));
}

t.test('lines break between words, also where a word arrives in pieces', async (t) => {
  const lines = ['one two ', 'three ', 'four'];
  t.strictSame(shown(10, 'one two three four'), lines);
  t.strictSame(shown(10, ...'one two three four'), lines);
  t.strictSame(shown(10, 'one two th', 'ree four'), lines);
});

t.test('line breaks stay, and the space at the edge becomes one', async (t) => {
  t.strictSame(shown(6, 'a b\n\nabcde fg'), ['a b', '', 'abcde', 'fg']);
});

t.test('code, and a word that is longer than a line, is left to the terminal', async (t) => {
  t.strictSame(shown(8, '```\nconst one = 1;\n```\none two three'), ['```', 'const one = 1;', '```', 'one two', 'three']);
  t.strictSame(shown(8, 'see https://example.org/path'), ['see https://example.org/path']);
});
