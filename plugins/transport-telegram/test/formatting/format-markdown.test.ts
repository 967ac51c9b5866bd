import fc from 'fast-check';
import t from 'tap';
import { formatMarkdown } from '../../src/formatting/format-markdown.js';
import { htmlOf, plainOf } from '../../src/formatting/html.js';
import { parseHtml } from '../support/parse-html.js';

/** Markdown of models, and the HTML that Telegram gets for it. */
const CASES: Readonly<Record<string, string>> = {
  'plain & <tags>': 'plain &amp; &lt;tags&gt;',
  'a **bold** and *soft* and ~~old~~ word': 'a <b>bold</b> and <i>soft</i> and <s>old</s> word',
  '***both*** __bold__ _soft_': '<i><b>both</b></i> <b>bold</b> <i>soft</i>',
  '**bold *and soft* text**': '<b>bold <i>and soft</i> text</b>',
  'snake_case_name and 2 * 3 * 4': 'snake_case_name and 2 * 3 * 4',
  '**never closed, *also not': '**never closed, *also not',
  '**closed ~~over** another~~': '<b>closed ~~over</b> another~~',
  '`a < b` and ``a ` b``': '<code>a &lt; b</code> and <code>a ` b</code>',
  'an `open tick': 'an `open tick',
  '\\*not soft\\*': '*not soft*',
  '**`x`** `**y**`': '<b><code>x</code></b> <code>**y**</code>',
  '[home](https://a.example/x_(y)?q="1") now': '[home](https://a.example/x_(y)?q=&quot;1&quot;) now'.replace(
    /\[home\]\((.*)\) now/,
    '<a href="$1">home</a> now',
  ),
  '[a **b**](https://a.example "title")': '<a href="https://a.example">a <b>b</b></a>',
  '[x](javascript:alert(1)) [y](/local)': 'x (javascript:alert(1)) y (/local)',
  '![a cat](https://a.example/cat.png)': '<a href="https://a.example/cat.png">a cat</a>',
  '[no link] [x] (y) [](https://a.example)': '[no link] [x] (y) <a href="https://a.example">https://a.example</a>',
  '<https://a.example/x> one<br>two': 'https://a.example/x one\ntwo',
  '# Title ##\n\ntext': '<b>Title</b>\n\ntext',
  '- one\n- [ ] two\n  * [x] **three**\n1. four': '• one\n☐ two\n  ☑ <b>three</b>\n1. four',
  '> one\n> **two**\n>> three\n\nafter': '<blockquote>one\n<b>two</b>\nthree</blockquote>\n\nafter',
  '---': '———',
  '```js\nif (a < b) `x`\n\n  ok\n```\nafter': '<pre><code class="language-js">if (a &lt; b) `x`\n\n  ok</code></pre>\nafter',
  '~~~\nopen *code*': '<pre>open *code*</pre>',
  '| a | b |\n|---|:-:|\n| **1** | long |\nend': '<pre>a | b\n--+-----\n1 | long</pre>\nend',
  '**over\ntwo lines**': '<b>over\ntwo lines</b>',
  '\n\n  text  \n\n': '  text',
  '[![alt](https://a.example/i.png)](https://a.example)':
    '<a href="https://a.example"><a href="https://a.example/i.png">alt</a></a>',
  '#': '#',
};

for (const [markdown, html] of Object.entries(CASES)) {
  t.test(`formats ${JSON.stringify(markdown)}`, async (t) => {
    t.equal(htmlOf(formatMarkdown(markdown)), html);
  });
}

/** Texts that are mostly marks. */
const texts = (...parts: readonly string[]) =>
  fc.array(fc.constantFrom(...'*_~`!#-\\ \nab', '😀', '**', ...parts), { maxLength: 60 }).map((all) => all.join(''));

t.test('whatever a model writes, the HTML is valid', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(texts('[', ']', '(', ')', '<', '>', '&', '|', '```', '](http://a.example)', '> ', '|-|\n'), (markdown) => {
        const formatted = formatMarkdown(markdown);
        const html = htmlOf(formatted);
        return parseHtml(html).text === formatted.text && plainOf(html) === formatted.text;
      }),
      { numRuns: 3000 },
    ),
  );
});

t.test('no letter is lost', async (t) => {
  const letters = (text: string) => text.replaceAll(/[^ab😀]/gu, '');
  // What follows the marks of a code block names its language, which is no text.
  const isText = (markdown: string) => !/~~~|```/.test(markdown);
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(
        texts('[', ']', '> ').filter(isText),
        (markdown) => letters(formatMarkdown(markdown).text) === letters(markdown),
      ),
      { numRuns: 3000 },
    ),
  );
});
