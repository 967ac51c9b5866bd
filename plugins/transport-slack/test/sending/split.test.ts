import t from 'tap';
import { MAX_TEXT, MIN_PART, markdownOf, splitMarkdown } from '../../src/sending/split.js';

const paragraph = `${'word '.repeat(99)}end.`;
const long = Array.from({ length: 80 }, (_, n) => `${n} ${paragraph}`).join('\n\n');

t.test('SL-7 a long answer becomes messages of 12,000 characters, cut between paragraphs', async (t) => {
  const parts = splitMarkdown(long);
  t.ok(parts.length > 3);
  for (const part of parts) t.ok(part.length <= MAX_TEXT && part.endsWith('end.'), `${part.length}`);
  for (const part of parts.slice(0, -1)) t.ok(part.length >= MIN_PART);
  t.equal(parts.join('\n\n'), long, 'nothing is lost');
});

t.test('SL-7 a code block that is cut is closed, and opened again', async (t) => {
  const lines = Array.from({ length: 2_000 }, (_, n) => `const x${n} = ${n};`);
  const parts = splitMarkdown(`See:\n\n\`\`\`\`ts\n${lines.join('\n')}\n\`\`\`\`\n\nDone.`);
  t.ok(parts.length > 2);
  for (const part of parts) {
    t.ok(part.length <= MAX_TEXT);
    t.equal(part.match(/^````/gm)?.length, 2, 'each message has the whole fence');
  }
  const code = parts.map((part) => /````ts\n([\s\S]*?)\n````/.exec(part)?.[1]).join('\n');
  t.strictSame(code.split('\n'), lines, 'no line is lost or changed');
});

t.test('SL-7 a text without a place to cut is cut, but no character is', async (t) => {
  const parts = splitMarkdown(`a${'😀'.repeat(20_000)}`);
  t.equal(parts.join(''), `a${'😀'.repeat(20_000)}`);
  for (const part of parts) t.ok(part.length <= MAX_TEXT && part.isWellFormed());
  const backticks = splitMarkdown('`'.repeat(30_000));
  for (const part of backticks) t.ok(part.length <= MAX_TEXT);
});

t.test('an empty answer is one message, and a short one stays as it is', async (t) => {
  t.strictSame(splitMarkdown(''), ['']);
  t.strictSame(splitMarkdown('**Hi** <@U1>'), ['**Hi** <@U1>']);
});

t.test('an answer notifies no channel', async (t) => {
  t.equal(
    markdownOf('<!channel> <!here|here> <!everyone> <!subteam^S1>'),
    '<\u200b!channel> <\u200b!here|here> <\u200b!everyone> <\u200b!subteam^S1>',
  );
  t.equal(markdownOf('<!doctype html> <!-- x --> <@U1>'), '<!doctype html> <!-- x --> <@U1>');
});
