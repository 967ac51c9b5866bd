import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { saying, type TestServer } from '../../../../../test/support/test-server.js';
import { findings, openWithAxe } from '../support/axe.js';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

const TOOLS = '  research: { use: agent, agent: researcher, description: Finds facts. }\n';
const AGENTS = `  chief: { model: fast, system: You are the chief., tools: [research] }
  researcher: { model: fast, system: You are the researcher., tools: [desk] }
`;
const ASK = { toolCalls: [{ name: 'research', arguments: { input: 'How many bees?' } }] };

/** A server whose agent `chief` asks `researcher`, which looks things up when the test lets it. */
async function startChief(t: Test) {
  const found = Promise.withResolvers<string>();
  const asked = Promise.withResolvers<void>();
  const lookup = () => {
    asked.resolve();
    return found.promise;
  };
  const app = await startPlayground(t, { tools: TOOLS, yaml: AGENTS, lookup });
  return { app, found, asked: asked.promise };
}

/** The model calls of the turn: the researcher says its last words when the test lets it. */
function play(app: TestServer, words: Promise<void>): void {
  app.models.enqueue(
    ASK,
    { text: '**Let me look.**', toolCalls: [lookUp('bees')] },
    { text: ['Two ', words, 'bees.'] },
    { text: 'There are two.' },
  );
}

export async function nested(t: Test, browser: Browser): Promise<void> {
  for (const [scheme, width] of [
    ['light', 1280],
    ['dark', 360],
  ] as const) {
    t.test(
      `AG-5 the steps of an agent that a tool asks show in its call, live and later: ${scheme}, ${width} pixels`,
      async (t) => {
        const { app, found, asked } = await startChief(t);
        const words = Promise.withResolvers<void>();
        play(app, words.promise);
        const page = await openWithAxe(t, browser, app, { scheme, width });
        await page.agent.selectOption('chief');
        await page.say('Count the bees');
        await asked;
        const card = page.cards.first();
        const preview = card.locator('> summary .tool-preview');
        await preview.getByText('desk/lookup').waitFor();
        await card.locator('> summary').focus();
        await page.page.keyboard.press('Enter');
        const steps = card.getByRole('list', { name: 'Steps of researcher' });
        await steps.getByText('Let me look.').waitFor();
        t.equal(await steps.locator('strong').innerText(), 'Let me look.', 'as Markdown');
        const inner = steps.locator('.tool');
        t.equal(await inner.getAttribute('data-status'), 'running');
        await page.page.keyboard.press('Tab');
        await page.page.keyboard.press('Tab');
        t.same(await findings(page), [], 'while it runs');
        found.resolve('All about bees');
        await steps.getByText('Two', { exact: true }).waitFor();
        t.equal(await inner.getAttribute('data-status'), 'ok');
        words.resolve();
        const turn = await page.ended(0);
        t.match(await turn.locator('.answer > markdown-text').innerText(), 'There are two.');
        t.equal(await card.evaluate((one) => one.hasAttribute('open')), true, 'it stays as the reader left it');
        t.equal(await card.getByText('Two bees.').count(), 1, 'the last text is the result');
        t.match(
          await steps.innerText(),
          /Step 1\s+fast [\d.]+ m?s\s+Let me look\.\s+desk\/?lookup\s+topic: "bees"[\s\S]*Step 2\s+fast/,
        );
        t.match(await turn.locator('.turn-facts').innerText(), /1 tool call$/);
        t.same(await findings(page), [], 'at the end');

        await page.page.reload();
        await page.ended(0);
        await card.locator('> summary').click();
        await steps.getByText('Step 2').waitFor();
        t.equal(await inner.getAttribute('data-status'), 'ok');
        t.match(await inner.innerText(), /lookup[\s\S]*\d m?s/);
        await inner.locator('summary').click();
        await inner.getByText('Of this call, only the time is known.').waitFor();
        t.same(await findings(page), [], 'after a reload');
        t.same(page.problems, []);
      },
    );
  }

  t.test('AG-5 a page that is opened in the middle shows what the agent has done so far', async (t) => {
    const { app, found, asked } = await startChief(t);
    const words = Promise.withResolvers<void>();
    play(app, words.promise);
    const { body } = await app.request('POST', '/v1/conversations', {}, { agent: 'chief', id: 'bees' });
    const client = app.stream({ ...saying('Count the bees', { session_id: 'bees' }), model: 'chief' });
    await asked;
    const page = await Playground.open(t, browser, app, { address: `#${(body as { id: string }).id}` });
    const card = page.cards.first();
    await card.locator('> summary').click();
    const inner = card.locator('.nested .tool');
    await inner.waitFor();
    t.equal(await inner.getAttribute('data-status'), 'running');
    found.resolve('All about bees');
    await card.locator('.nested').getByText('Two', { exact: true }).waitFor();
    t.equal(await inner.getAttribute('data-status'), 'ok');
    words.resolve();
    await page.ended(0);
    await client;
    t.equal(await card.getByText('Two bees.').count(), 1);
    await page.button('Events').click();
    const labels = page.page.locator('.event-label');
    await labels.getByText('svc:nested tool_result', { exact: true }).waitFor();
    t.equal(await labels.getByText('svc:nested text', { exact: true }).count(), 0, 'pieces of text show with the deltas');
    await page.page.getByLabel('Show deltas').check();
    await labels.getByText('svc:nested text', { exact: true }).first().waitFor();
    t.same(page.problems, []);
  });

  t.test('AG-9 a call inside of the agent is decided on the page, by its way', async (t) => {
    const topics: string[] = [];
    const lookup = (topic: string) => {
      topics.push(topic);
      return `All about ${topic}`;
    };
    const yaml = AGENTS.replace('tools: [desk]', 'tools: [desk], approve: [desk]');
    const app = await startPlayground(t, { tools: TOOLS, yaml, lookup });
    const page = await Playground.open(t, browser, app);
    await page.agent.selectOption('chief');
    app.models.enqueue(ASK, { toolCalls: [lookUp('bees')] }, { text: 'Two bees.' }, { text: 'There are two.' });
    await page.ask('Count the bees');
    const card = page.page.locator('.answer > .tool');
    t.equal(await card.getAttribute('data-status'), 'waiting', 'the call of the chief waits, and is there once');
    t.match(await card.innerText(), /research › desk\/?lookup\s+topic: "bees"\s+needs approval/);
    await page.page.reload();
    await page.settled();
    t.match(await card.innerText(), /research › desk\/?lookup\s+topic: "bees"/, 'after a reload');
    t.match(await card.locator('.nested').innerText(), /Step 1\s+fast[\s\S]*lookup\s+needs approval/, 'with the steps so far');
    t.same(topics, []);
    await page.button('Approve research › desk/lookup').click();
    await page.page.getByText('There are two.', { exact: true }).waitFor();
    await page.ended(0);
    t.same(topics, ['bees']);
    t.equal(await page.button(/^(Approve|Deny)/).count(), 0);
    t.same(page.problems, []);
  });
}
