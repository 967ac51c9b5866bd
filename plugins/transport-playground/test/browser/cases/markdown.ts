import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { startPlayground } from '../support/server.js';

const PROGRAM = '// why\nconst answer = 42;\nsend(answer);';

export async function markdown(t: Test, browser: Browser): Promise<void> {
  t.test('task lists show what is done, and table columns are aligned', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ text: '- [x] packed\n- [ ] sent\n\n| a | b | c |\n| - | -: | :-: |\n| 1 | 2 | 3 |' });
    const turn = await page.ask('How far is it?');
    t.same(await turn.locator('li').allTextContents(), ['Done: packed', 'To do: sent']);
    t.equal(await turn.locator('.task').count(), 2);
    t.equal(await turn.locator('.task.done').count(), 1);
    const alignments = await page.page.evaluate(
      '[...document.querySelectorAll("td")].map((cell) => getComputedStyle(cell).textAlign)',
    );
    t.same(alignments, ['start', 'right', 'center']);
    t.same(page.problems, []);
  });

  t.test('text in scripts from right to left begins at the right, and code stays as it is', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const text = [
      'مرحبا بالعالم.',
      'In English.',
      '- פריט ראשון\n- `npm test` ואז\n- An English item.',
      '| עמודה | שנייה |\n| - | - |\n| א | ב |',
      '```js\nconst a = "שלום";\n```',
    ].join('\n\n');
    app.models.enqueue({ text });
    const turn = await page.ask('שאלה?');
    const sideOf = (selector: string) =>
      turn
        .locator(selector)
        .first()
        .evaluate((element) => {
          const range = element.ownerDocument.createRange();
          range.selectNodeContents(element);
          const [text, box] = [range.getBoundingClientRect(), element.getBoundingClientRect()];
          return Math.abs(box.right - text.right) < Math.abs(text.left - box.left) ? 'right' : 'left';
        });
    t.equal(await sideOf('.block:nth-child(1) p'), 'right');
    t.equal(await sideOf('.block:nth-child(2) p'), 'left');
    t.equal(await sideOf('.block:nth-child(3) li'), 'right');
    t.equal(await sideOf('.block:nth-child(3) li:last-child'), 'right', 'at its marker');
    const [first, second] = await Promise.all([0, 1].map((at) => turn.locator('th').nth(at).boundingBox()));
    t.ok((first?.x ?? 0) > (second?.x ?? 0), 'the first column is at the right');
    const directions = (selector: string) =>
      turn.locator(selector).evaluateAll((all) => all.map((one) => (one.matches(':dir(rtl)') ? 'rtl' : 'ltr')));
    t.same(await directions('.block > *'), ['rtl', 'ltr', 'rtl', 'rtl', 'ltr']);
    t.same(await directions('code'), ['ltr', 'ltr']);
    t.same(await directions('.asked p'), ['rtl']);
    t.same(page.problems, []);
  });

  t.test('S-76 tables and lists that are too large are shown as they were written, with a note', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const wide = ['a', '-', 'b'].map((cell) => `|${`${cell}|`.repeat(3000)}`).join('\n');
    const short = `|${'a|'.repeat(90)}\n|${'-|'.repeat(90)}\n${'|\n'.repeat(5000)}`;
    const small = '| a | b |\n| - | - |\n| 1 | 2 |';
    app.models.enqueue({ text: `${wide}\n\n${short}\n\n${'- a\n'.repeat(5000)}\n\n${'<div\n'.repeat(5000)}\n\n${small}` });
    const turn = await page.ask('Draw');
    await turn.locator('td').first().waitFor();
    t.equal(await turn.getByText('too large to be laid out').count(), 4);
    t.equal(await turn.locator('td').count(), 2);
    t.match(await turn.locator('pre').first().innerText(), /^\|a\|a/);
    t.same(page.problems, []);
  });

  t.test('code is coloured when it is complete, and is copied as it was written', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const gate = Promise.withResolvers<void>();
    app.models.enqueue({
      text: [`\`\`\`js\n${PROGRAM}\n\`\`\`\n\n`, 'More', gate.promise, ' text.\n\n```nonsense\nlet a;\n```'],
    });
    await page.say('Write it');
    await page.page.locator('.hljs-keyword', { hasText: 'const' }).waitFor();
    t.equal(await page.page.locator('.hljs-comment').innerText(), '// why', 'while the turn runs');
    gate.resolve();
    const turn = await page.ended(0);
    await turn.getByRole('button', { name: 'Copy', exact: true }).first().click();
    t.equal((await page.clipboard()).trim(), PROGRAM);
    await eventually(async () => (await turn.locator('code[data-coloured]').count()) === 2);
    t.equal(await turn.locator('code').nth(1).locator('span').count(), 0, 'a language that is not known stays plain');
    t.same(page.problems, []);
  });

  t.test('a huge block of code, or one with a huge line, stays plain', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({
      text: ['const a = 1;\n'.repeat(2000), `${'a'.repeat(10_000)}\n`, 'const b = 2;\n']
        .map((one) => `\`\`\`js\n${one}\`\`\``)
        .join('\n\n'),
    });
    const turn = await page.ask('Write it');
    await turn.locator('code').nth(2).locator('.hljs-keyword').waitFor();
    for (const at of [0, 1]) t.equal(await turn.locator('code').nth(at).locator('span').count(), 0);
    t.same(page.problems, []);
  });

  t.test('the script that colours code is loaded with the first code, and nothing is lost without it', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const loaded: string[] = [];
    await page.page.route('**/highlight*.js', (route) => {
      loaded.push(route.request().url());
      return route.abort();
    });
    app.models.enqueue({ text: 'Only words.' }, { text: '```js\nlet a;\n```' });
    await page.ask('Speak');
    await page.page.locator('markdown-text .block').first().waitFor();
    t.equal(loaded.length, 0);
    const turn = await page.ask('Write it');
    await eventually(() => loaded.length === 1);
    t.match(await turn.locator('code').innerText(), 'let a;');
  });

  t.test('lines of code wrap in all blocks at once, also after a reload', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const block = `\`\`\`\n${'long line '.repeat(40)}\n\`\`\``;
    app.models.enqueue({ text: `${block}\n\nAnd\n\n${block}` });
    const turn = await page.ask('Write it');
    const scrolls = () => turn.locator('pre').evaluateAll((all) => all.map((one) => one.scrollWidth > one.clientWidth));
    t.same(await scrolls(), [true, true]);
    const wrap = turn.getByRole('button', { name: 'Wrap' });
    await wrap.first().click();
    t.same(await scrolls(), [false, false]);
    t.equal(await wrap.nth(1).getAttribute('aria-pressed'), 'true');
    await page.page.reload();
    await wrap.first().waitFor();
    t.same(await scrolls(), [false, false]);
    await wrap.first().click();
    t.same(await scrolls(), [true, true]);
    t.same(page.problems, []);
  });

  t.test('a text that is hard to render holds nothing up, and is shown as far as it goes', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    for (const [what, text] of Object.entries({
      emphasis: '*a_'.repeat(30_000),
      quotes: `${'>'.repeat(10_000)} deep`,
      lists: Array.from({ length: 500 }, (_, depth) => `${' '.repeat(2 * depth)}- item`).join('\n'),
      'a long line': 'word *it* '.repeat(30_000),
    })) {
      app.models.enqueue({ text: `${text}\n\n*The end.*` });
      const turn = await page.ask(what);
      await turn.locator('em', { hasText: 'The end.' }).waitFor();
    }
    t.same(page.problems, []);
  });

  t.test('a long text is rendered in parts, each in its place, also after a reload', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const parts = Array.from({ length: 1500 }, (_, at) => `Part ${at} ${'of a *long* text '.repeat(10)}[here].`);
    app.models.enqueue({
      text: ['[here]: https://here.example\n\n', parts.slice(0, 700).join('\n\n'), `\n\n${parts.slice(700).join('\n\n')}`],
    });
    await page.ask('Tell me everything');
    for (const when of ['as it arrives', 'after a reload']) {
      const blocks = page.page.locator('markdown-text .block');
      await blocks.nth(1499).waitFor();
      const starts = await blocks.evaluateAll((all) => all.map((one) => one.textContent.split(' ', 2).join(' ')));
      t.same(
        starts,
        parts.map((_, at) => `Part ${at}`),
        when,
      );
      t.equal(await page.page.locator('markdown-text a[href="https://here.example"]').count(), 1500);
      await page.page.reload();
    }
    t.same(page.problems, []);
  });

  t.test('the lines of a text stay lines', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ text: 'README.md\nsrc/index.ts\nsrc/config.ts\n\nThree files.' });
    const turn = await page.ask('Which files are there?');
    await turn.locator('.block').nth(1).waitFor();
    t.equal(await page.answer(turn), 'README.md\nsrc/index.ts\nsrc/config.ts\n\nThree files.');
    t.same(page.problems, []);
  });
}
