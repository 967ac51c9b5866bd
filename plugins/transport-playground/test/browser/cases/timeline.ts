import { setTimeout } from 'node:timers/promises';
import { eventually } from '@plugboard/testing';
import type { Browser, Locator } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

/** The rows of a turn's timeline: the part, its time and its tokens. */
async function rowsOf(turn: Locator): Promise<readonly string[]> {
  const details = turn.locator('.turn-facts');
  if (!(await details.evaluate((element) => element.hasAttribute('open')))) await details.locator('summary').click();
  await turn.locator('.timeline tbody tr').first().waitFor();
  const rows = await turn.locator('.timeline tbody tr').allInnerTexts();
  return rows.map((row) => row.replaceAll(/\s+/g, ' ').trim());
}

/** Where the bars of a turn begin and end, in thousandths of its time. */
function barsOf(turn: Locator): Promise<readonly (readonly [number, number])[]> {
  return turn.locator('.timeline tbody tr').evaluateAll((rows) =>
    rows.map((row) => {
      const rects = [...row.querySelectorAll('rect')].map(
        (rect) => [Number(rect.getAttribute('x')), Number(rect.getAttribute('width'))] as const,
      );
      return [Math.min(...rects.map(([x]) => x)), Math.max(...rects.map(([x, width]) => x + width))] as const;
    }),
  );
}

export async function timeline(t: Test, browser: Browser): Promise<void> {
  t.test('a timeline shows model calls and parallel tools, from the live events and from the store alike', async (t) => {
    const slow = Promise.withResolvers<string>();
    const quick = Promise.withResolvers<void>();
    const lookup = (topic: string) => {
      if (topic === 'slow') return slow.promise;
      quick.resolve();
      return 'All about quick';
    };
    const app = await startPlayground(t, { lookup });
    const page = await Playground.open(t, browser, app);
    await page.page.route('**/turns?*', (route) => route.fulfill({ json: { data: [], has_more: false } })); // first without the store
    app.models.enqueue({ toolCalls: [lookUp('slow'), lookUp('quick')] }, { text: 'Both are found.' });
    await page.say('Look up both');
    await quick.promise;
    await page.cards.nth(1).waitFor();
    await setTimeout(50); // a tool that takes its time
    slow.resolve('All about slow');
    for (const source of ['live', 'stored']) {
      const turn = await page.ended(0);
      const rows = await rowsOf(turn);
      t.equal(rows.length, 4, source);
      t.match(rows[0], /^Model( fast)? [\d.]+ m?s [\d.]+ m?s first token [\d.]+ m?s/, source);
      t.match(rows.slice(1, 3).toSorted(), [/^Tool desk\/lookup/, /^Tool desk\/lookup/], source);
      t.match(rows[3], /^Model/, source);
      const [, first, second, last] = await barsOf(turn);
      t.ok(first && second && last && second[0] < first[1], `${source}: the tools overlap`);
      t.ok(last && first && last[0] >= Math.max(first[1], second?.[1] ?? 0) - 5, `${source}: the second model call follows both`);
      if (source === 'live') {
        await page.page.unroute('**/turns?*');
        await page.page.reload();
        await turn.locator('.turn-facts').waitFor();
      }
    }
    const turn = page.turns.first();
    t.match((await rowsOf(turn))[0], /Model fast .*\d+ in, \d+ out$/, 'the tokens of each model call');
    t.match(await turn.locator('.turn-facts summary').innerText(), /\d+ tokens/, 'and of the turn');
    t.match(await turn.locator('.tool-state').first().innerText(), /\d m?s/, 'and the duration of each call');
    t.same(page.problems, []);
  });

  t.test('a call that failed is failed in the timeline, and a person who decides is part of it', async (t) => {
    const yaml = '  guarded: { model: fast, tools: [desk], approve: [desk] }\n';
    const lookup = () => {
      throw new Error('no such topic');
    };
    const app = await startPlayground(t, { yaml, lookup });
    const page = await Playground.open(t, browser, app);
    await page.agent.selectOption('guarded');
    app.models.enqueue({ toolCalls: [lookUp('treasure')] }, { text: 'It failed.' });
    await page.ask('Look it up');
    t.match(await rowsOf(page.turns.first()), [/^Model/, /^Approval desk\/lookup .*waiting$/]);
    await page.button('Approve desk/lookup').click();
    await page.page.getByText('It failed.').waitFor();
    const turn = await page.ended(0);
    const live = await rowsOf(turn);
    t.match(
      live.map((row) => row.split(' ')[0]),
      ['Model', 'Approval', 'Tool', 'Model'],
    );
    t.match(live[2], /failed/);
    await page.page.reload();
    await page.turns.first().locator('.turn-facts').waitFor();
    const stored = await rowsOf(page.turns.first());
    t.match(
      stored.map((row) => row.split(' ')[0]),
      ['Model', 'Approval', 'Tool', 'Model'],
    );
    t.match(stored[1], /approved/);
    t.match(stored[2], /failed/);
    t.same(page.problems, []);
  });

  t.test('the events of one turn can be shown alone, and the log follows the newest until the reader scrolls up', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app, { height: 600 });
    app.models.respond({ text: 'Yes.' });
    await page.ask('First');
    const second = await page.ask('Second');
    await rowsOf(second);
    await page.button('Events of this turn').click();
    const labels = page.page.locator('.event-label');
    await eventually(async () => (await labels.first().innerText()) === 'response.create');
    t.equal(await labels.getByText('response.completed').count(), 1);
    await page.page.getByLabel('Events of').selectOption('All turns');
    await eventually(async () => (await labels.getByText('response.completed').count()) === 2);

    const atEnd = () => page.page.evaluate('panel.scrollHeight - panel.scrollTop - panel.clientHeight < 2');
    for (let round = 0; round < 3; round++) await page.ask('Again');
    t.equal(await atEnd(), true);
    await page.page.evaluate('panel.scrollTo(0, 0)');
    await page.rendered();
    await page.ask('Once more');
    t.equal(await page.page.evaluate('panel.scrollTop'), 0, 'the reader keeps the place');
    t.same(page.problems, []);
  });
}
