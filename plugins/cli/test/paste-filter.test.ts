import { PassThrough } from 'node:stream';
import t from 'tap';
import { PasteFilter } from '../src/chat/paste-filter.js';

const PASTE = '\x1b[200~first\nsecond\rthird é\r\x1b[201~';

/** What readline receives of these reads. */
async function received(...reads: readonly (string | Buffer)[]) {
  const terminal = new PassThrough();
  const filter = new PasteFilter(terminal);
  for (const read of reads) terminal.write(read);
  terminal.end();
  let text = '';
  for await (const piece of filter) text += piece;
  return { text, restored: filter.restore(text) };
}

t.test('a pasted text of several lines is one mark, which stands for the text', async (t) => {
  t.strictSame(await received(`see ${PASTE}!\r`), {
    text: 'see [pasted text 1, 3 lines]!\r',
    restored: 'see first\nsecond\nthird é!\r',
  });
});

t.test('a paste that arrives byte by byte is the same', async (t) => {
  const bytes = Buffer.from(`${PASTE}\r${PASTE}`);
  const { text, restored } = await received(...Array.from(bytes, (byte) => Buffer.from([byte])));
  t.equal(text, '[pasted text 1, 3 lines]\r[pasted text 2, 3 lines]');
  t.equal(restored, 'first\nsecond\nthird é\rfirst\nsecond\nthird é');
});

t.test('control characters of a paste are no keys', async (t) => {
  const { text } = await received('\x1b[200~a\x03b\x04 \x1b[31mred\x1b[0m\x1b[A\tc\x07\x1b[201~\x03');
  t.equal(text, 'ab red\tc\x03');
  t.equal((await received('\x1b[200~a\x03\nb\x1b[A\x1b[201~')).restored, 'a\nb');
});

t.test('one pasted line, and keys such as the arrows, are passed on as they are', async (t) => {
  t.equal((await received('\x1b[200~one line\n\x1b[201~')).text, 'one line');
  t.equal((await received('\x1b[A', '\x1b', '[2~', 'x')).text, '\x1b[A\x1b[2~x');
  t.equal((await received('[pasted text 1, 3 lines]')).restored, '[pasted text 1, 3 lines]', 'a mark that was typed');
});
