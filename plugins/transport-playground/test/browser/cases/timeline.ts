import { eventually } from '@plugboard/testing';
import type { Browser, Locator } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

/** The parts of a turn. On a busy machine any turn may have waited first. */
const ROWS = '.timeline tbody tr:not([data-kind=queue])';

/** The rows of a turn's timeline: the part, its time and its tokens. */
async function rowsOf(turn: Locator): Promise<readonly string[]> {
  const details = turn.locator('.turn-facts');
  if (!(await details.evaluate((element) => element.hasAttribute('open')))) await details.locator('summary').click();
  await turn.locator(ROWS).first().waitFor();
  const rows = await turn.locator(ROWS).allInnerTexts();
  return rows.map((row) => row.replaceAll(/\s+/g, ' ').trim());
}

/** Where the bars of a turn begin and end, in thousandths of its time. */
function barsOf(turn: Locator): Promise<readonly (readonly [number, number])[]> {
  return turn.locator(ROWS).evaluateAll((rows) =>
    rows.map((row) => {
      const rects = [...row.querySelectorAll('rect')].map(
        (rect) => [Number(rect.getAttribute('x')), Number(rect.getAttribute('width'))] as const,
      );
      return [Math.min(...rects.map(([x]) => x)), Math.max(...rects.map(([x, width]) => x + width))] as const;
    }),
  );
}

/** What else says how long a turn and its parts took. */
async function factsOf(turn: Locator): Promise<readonly string[]> {
  return [
    ...(await turn.locator('.turn-facts summary').allInnerTexts()),
    ...(await turn.locator('.tool-state').allInnerTexts()),
    ...(await turn.locator('.reasoning-time').allInnerTexts()),
  ];
}

export async function timeline(t: Test, browser: Browser): Promise<void> {
  t.test('C-241 a timeline grows while its turn runs, and is the same at the end and after a reload', async (t) => {
    const slow = Promise.withResolvers<string>();
    const quick = Promise.withResolvers<void>();
    const lookup = (topic: string) => {
      if (topic === 'slow') return slow.promise;
      quick.resolve();
      return 'All about quick';
    };
    const app = await startPlayground(t, { lookup });
    const page = await Playground.open(t, browser, app);
    await page.page.route('**/turns?*', (route) => route.abort()); // what the live events say is enough
    const model = Promise.withResolvers<void>();
    app.models.enqueue(
      { before: model.promise, reasoning: 'Let me look.', toolCalls: [lookUp('slow'), lookUp('quick')] },
      { text: 'Both are found.' },
    );
    await page.say('Look up both');
    const turn = page.turns.first();
    await eventually(async () => /^Model \d+ ms [\d.]+ m?s running$/.test((await rowsOf(turn)).join()));
    const waited = (await rowsOf(turn))[0];
    await eventually(async () => (await rowsOf(turn))[0] !== waited);
    model.resolve();
    await quick.promise;
    await eventually(async () => (await turn.locator('[data-kind=tool]:not([data-open])').count()) === 1);
    t.match((await rowsOf(turn)).toSorted(), [
      /^Model fast .+first token [\d.]+ m?s \d+ in, \d+ out$/,
      /^Tool desk/,
      /^Tool desk/,
    ]);
    t.equal(await turn.locator('[data-kind=tool][data-open]').count(), 1, 'the other one runs');
    await page.page.evaluate('Date.now = () => 0'); // the system clock jumps
    slow.resolve('All about slow');
    await page.ended(0);
    t.equal(await turn.locator('.timeline').isVisible(), true, 'it stays open at the end');
    const live = { rows: await rowsOf(turn), bars: await barsOf(turn), facts: await factsOf(turn) };
    t.match(live.rows[0], /^Model fast [\d.]+ m?s [\d.]+ m?s first token [\d.]+ m?s \d+ in, \d+ out$/);
    t.match(live.rows.slice(1, 3).toSorted(), [/^Tool desk\/lookup/, /^Tool desk\/lookup/]);
    t.match(live.rows[3], /^Model fast/);
    const [, first, second, last] = live.bars;
    t.ok(first && second && last && second[0] < first[1], 'the tools overlap');
    t.ok(last && first && last[0] >= Math.max(first[1], second?.[1] ?? 0) - 5, 'the second model call follows both');
    t.match(live.facts.slice(0, 3), [/tokens/, /\d m?s/, /\d m?s/]);
    await page.page.unroute('**/turns?*');
    await page.page.reload();
    await turn.locator('.turn-facts').waitFor();
    t.strictSame({ rows: await rowsOf(turn), bars: await barsOf(turn), facts: await factsOf(turn) }, live, 'after a reload');
    t.match(await turn.locator('.reasoning').textContent(), /Let me look\./, 'with the reasoning');
    t.same(
      page.problems.filter((problem) => !problem.includes('net::ERR_FAILED')),
      [],
    );
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

    const reads = labels.getByText('GET /v1/conversations?limit=30', { exact: true });
    const note = page.page.locator('.event', { has: reads }).locator('.event-note');
    await eventually(async () => /^200 ×\d+$/.test(await note.innerText()));
    t.equal(await reads.count(), 1, 'a read that is repeated is one line');
    const atEnd = () => page.page.evaluate('panel.scrollHeight - panel.scrollTop - panel.clientHeight < 2');
    for (let round = 0; round < 3; round++) await page.ask('Again');
    t.equal(await atEnd(), true);
    await page.page.evaluate('panel.scrollTo(0, 0)');
    await page.rendered();
    await page.ask('Once more');
    t.equal(await page.page.evaluate('panel.scrollTop'), 0, 'the reader keeps the place');

    const gate = Promise.withResolvers<void>();
    app.models.enqueue({ text: ['Slowly', gate.promise] });
    await page.say('A long one');
    await page.page.getByText('Slowly').waitFor();
    const count = await page.turns.count();
    await page.page.getByLabel('Events of').selectOption(String(count - 1));
    await eventually(async () => (await labels.first().innerText()) === 'response.create');
    t.equal(await labels.getByText('response.completed').count(), 0, 'the turn that runs');
    await page.page.getByLabel('Events of').selectOption('0');
    await eventually(async () => (await labels.getByText('response.completed').count()) === 1);
    const shown = await labels.allInnerTexts();
    gate.resolve();
    await page.ended(count - 1);
    t.same(await labels.allInnerTexts(), shown, 'an earlier turn, while another one runs');
    t.equal(
      await page.page
        .locator('.composer-row')
        .first()
        .evaluate((row) => row.scrollWidth <= row.clientWidth),
      true,
      'the row below the message is not cut',
    );
    t.same(page.problems, []);
  });
}
