import fc from 'fast-check';
import t from 'tap';
import { LineSplitter } from '../src/process/line-splitter.js';

/** The lines that come of these chunks, with a `…` behind those that were cut. */
function linesOf(chunks: readonly Buffer[], limit = 1000): string[] {
  const lines: string[] = [];
  const splitter = new LineSplitter(limit, (line, cut) => lines.push(cut ? `${line}…` : line));
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return lines;
}

t.test('splits a stream into the same lines wherever its chunks end, even within a character', async () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll(/[\r\n]/g, ' '));
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat({ max: 400 })), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
      const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
      const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
      return JSON.stringify(linesOf(chunks)) === JSON.stringify(lines);
    }),
  );
});

t.test('accepts CRLF, and a last line without a newline', async (t) => {
  t.strictSame(linesOf([Buffer.from('one\r\ntwo\r'), Buffer.from('\n\nthree')]), ['one', 'two', '', 'three']);
});

t.test('keeps only the beginning of a line over the limit, and the next line whole', async (t) => {
  t.strictSame(linesOf([Buffer.from('123'), Buffer.from('4567'), Buffer.from('8\n1234\n12345')], 4), ['1234…', '1234', '1234…']);
});
