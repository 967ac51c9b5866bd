import fc from 'fast-check';
import t from 'tap';
import { formatMarkdown } from '../../src/formatting/format-markdown.js';
import { messagesOf } from '../../src/formatting/messages-of.js';
import { splitFormatted } from '../../src/formatting/split.js';
import { formattingFault } from '../support/formatting-fault.js';
import { parseHtml } from '../support/parse-html.js';

t.test('TG-7 a message has at most 4,096 UTF-16 units, and no cut is inside a surrogate pair', async (t) => {
  for (const text of ['😀'.repeat(5000), `a${'😀'.repeat(5000)}`, 'word '.repeat(3000), '&'.repeat(9000), '*x* '.repeat(4000)]) {
    const parts = messagesOf(text);
    for (const part of parts) t.equal(formattingFault(part, 'HTML'), undefined);
    const shown = parts.map((part) => parseHtml(part).text);
    t.equal(shown.join('').replaceAll(' ', ''), formatMarkdown(text).text.replaceAll(' ', ''), 'nothing is lost');
    t.ok(shown.length <= Math.ceil(formatMarkdown(text).text.length / 2048), 'messages are at least half full');
  }
});

t.test('TG-7 a code block that fits is whole, in a message of its own if it must be', async (t) => {
  const code = `let x = 1;\n${'// a comment\n'.repeat(200)}`;
  const block = `\`\`\`js\n${code}\`\`\``;
  const parts = messagesOf(`${'Before. '.repeat(300)}\n\n${block}\n\n${'After. '.repeat(300)}\n\n${block}`).map(parseHtml);
  const blocks = parts.flatMap(({ text, entities }) =>
    entities.filter(({ type }) => type === 'pre').map(({ offset, length }) => text.slice(offset, offset + length)),
  );
  t.strictSame(blocks, [code.trimEnd(), code.trimEnd()]);
});

t.test('TG-7 a code block that does not fit is cut between lines, and stays code', async (t) => {
  const lines = Array.from({ length: 900 }, (_, n) => `  line ${n};`);
  const parts = messagesOf(`Intro\n\n\`\`\`\n${lines.join('\n')}\n\`\`\``).map(parseHtml);
  t.ok(parts.length > 2);
  const shown = parts.flatMap(({ text, entities }) =>
    entities.filter(({ type }) => type === 'pre').map(({ offset, length }) => text.slice(offset, offset + length)),
  );
  t.strictSame(shown.join('\n').split('\n'), lines);
});

t.test('cuts between paragraphs first, then lines, sentences and words', async (t) => {
  const split = (text: string) => splitFormatted({ text, entities: [] }, 20).map((part) => part.text);
  t.strictSame(split('one two three\n\nfour five six'), ['one two three', 'four five six']);
  t.strictSame(split('one two. three\nfour five six'), ['one two. three', 'four five six']);
  t.strictSame(split('one two three. four five six'), ['one two three.', 'four five six']);
  t.strictSame(split('one two three four five six'), ['one two three four', 'five six']);
  t.strictSame(split('x'.repeat(45)), ['x'.repeat(20), 'x'.repeat(20), 'x'.repeat(5)]);
});

t.test('TG-7 no cut is inside an entity that fits', async (t) => {
  const word = fc.constantFrom(
    '*soft text*',
    '**bold and `code`**',
    '[a link](https://a.example)',
    'plain',
    '😀',
    '\n\n',
    'x'.repeat(50),
  );
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.array(word, { maxLength: 80 }), (words) => {
        const formatted = formatMarkdown(words.join(' '));
        const parts = splitFormatted(formatted, 40);
        const count = (all: readonly { length: number }[]) => all.filter(({ length }) => length <= 40).length;
        const whole = count(formatted.entities) === count(parts.flatMap(({ entities }) => entities));
        return whole && parts.every(({ text }) => text.length <= 40 && text.isWellFormed() && text.trim() !== '');
      }),
      { numRuns: 1000 },
    ),
  );
});
