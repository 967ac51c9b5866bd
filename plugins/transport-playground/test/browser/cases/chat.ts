import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { HeldEvents } from '../support/held-events.js';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

const MARKDOWN = `# Result

The time is **10:04**, see \`clock\`.

- one
- two

\`\`\`js
const answer = 42;
\`\`\`

| City | Time |
| --- | --- |
| Tokyo | 10:04 |
`;

export async function chat(t: Test, browser: Browser): Promise<void> {
  t.test('a person picks an agent, watches its tools work and reads the answer', async (t) => {
    const results = { treasure: Promise.withResolvers<string>(), nothing: Promise.withResolvers<string>() };
    const app = await startPlayground(t, { lookup: (topic) => results[topic as keyof typeof results].promise });
    const page = await Playground.open(t, browser, app);
    await page.agent.selectOption('bare');
    await page.agent.selectOption('assistant');
    const gate = Promise.withResolvers<void>();
    app.models.enqueue(
      {
        toolCalls: [
          { id: 'call_1', ...lookUp('treasure') },
          { id: 'call_2', ...lookUp('nothing') },
        ],
      },
      { text: ['It lies ', gate.promise, 'under the oak.'] },
    );
    await page.say('Where is the treasure?');
    const [found, failed] = [page.cards.nth(0), page.cards.nth(1)];
    await failed.getByText('running').waitFor();
    t.match(await found.locator('summary').innerText(), /desk\s*\/?\s*lookup\s+topic: "treasure"\s+running/);
    results.treasure.resolve('{"place":"under the oak"}');
    await found.and(page.page.locator('[data-status=ok]')).waitFor();
    t.match(await found.locator('.tool-state').innerText(), /\d+ ms|\d+\.\d s/, 'with its duration');
    t.equal(await failed.getAttribute('data-status'), 'running', 'each call has a card of its own');
    results.nothing.reject(new Error('There is no such topic'));
    await failed.and(page.page.locator('[data-status=failed]')).waitFor();
    await page.page.getByText('It lies').waitFor();
    t.ok(await page.button('Stop').isVisible(), 'while the answer streams');
    gate.resolve();
    const turn = await page.ended(0);
    t.equal(await page.answer(turn), 'It lies under the oak.');
    t.match(await turn.locator('.turn-facts').innerText(), /^\d.+tokens \(\d+ in, \d+ out\).+2 tool calls$/s);

    const body = found.locator('.tool-body');
    t.notOk(await body.isVisible(), 'the result is folded');
    await found.locator('summary').click();
    t.match(await body.innerText(), /Arguments\s+\{\s+"topic": "treasure"\s+\}\s+Result\s+\{\s+"place": "under the oak"\s+\}/);
    await found.getByLabel('Copy result').click();
    t.same(JSON.parse(await page.clipboard()), { place: 'under the oak' });
    await failed.locator('summary').click();
    t.match(await failed.locator('.tool-body').innerText(), /There is no such topic/);
    t.same(page.problems, []);
  });

  t.test('an answer of the default agent, because the chosen one is gone, says so', async (t) => {
    const app = await startPlayground(t, { yaml: 'defaultAgent: assistant\n' });
    const page = await Playground.open(t, browser, app);
    await page.agent.selectOption('bare');
    const file = join(app.started.folder, 'plugboard.yaml');
    await writeFile(file, (await readFile(file, 'utf8')).replace('  bare: { model: fast }\n', ''));
    t.equal((await app.started.server.reload()).refused, undefined);
    app.models.enqueue({ text: 'Hello.' });
    await page.say('Hello');
    await page.ended(0);
    await page.page
      .getByRole('alert')
      .getByText('There is no agent bare any more: assistant, the default agent, answers.')
      .waitFor();
  });

  t.test('Markdown is shown formatted, and code and answers can be copied', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ text: [...MARKDOWN].map((letter) => letter) });
    const turn = await page.ask('Show me everything');
    t.equal(await turn.locator('h1').innerText(), 'Result');
    t.equal(await turn.locator('strong').innerText(), '10:04');
    t.same(await turn.locator('li').allInnerTexts(), ['one', 'two']);
    t.same(await turn.locator('td').allInnerTexts(), ['Tokyo', '10:04']);
    await turn.getByRole('button', { name: 'Copy', exact: true }).click();
    t.equal(await page.clipboard(), 'const answer = 42;\n');
    await turn.getByLabel('Copy answer').click();
    t.equal(await page.clipboard(), MARKDOWN.trim());
    t.same(page.problems, []);
  });

  t.test('Esc stops a turn at the model, and the next message works at once', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ text: ['Once upon a time', new Promise(() => {})] });
    await page.say('Tell me a story');
    await page.page.getByText('Once upon a time').waitFor();
    await page.message.press('Escape');
    const turn = await page.ended(0);
    t.match(await turn.innerText(), /Once upon a time\s+Stopped/);
    t.equal(await (await app.models.received(1)).ended, 'aborted');
    app.models.enqueue({ text: 'Fine.' });
    t.equal(await page.answer(await page.ask('Never mind')), 'Fine.');
    t.same(page.problems, []);
  });

  t.test('a stopped turn does not leak into the next one, however fast it follows', async (t) => {
    // Events of the first turn that arrive before it is stopped, and before the next message.
    for (const [before, after] of [
      [0, 0],
      [0, 3],
      [3, 0],
      [3, 2],
    ] as const) {
      const app = await startPlayground(t);
      const page = await Playground.open(t, browser, app);
      const events = await HeldEvents.of(page, before);
      app.models.respond(({ body }) =>
        JSON.stringify(body.messages.at(-1)).includes('First')
          ? { text: ['Once ', 'upon ', new Promise(() => {})] }
          : { text: 'Second answer' },
      );
      await page.say('First');
      await eventually(() => events.waiting >= after && app.models.requests.length > 0);
      await page.button('Stop').click();
      events.pass(after);
      const name = `stopped after ${before} events, ${after} more before the next message`;
      t.match(await (await page.ended(0)).innerText(), /First\s[\s\S]*Stopped/, name);
      await page.say('Second');
      await page.page.locator('.asked', { hasText: 'Second' }).waitFor();
      events.pass(Number.POSITIVE_INFINITY);
      t.equal(await page.answer(await page.ended(1)), 'Second answer', name);
      t.match(await page.turns.first().innerText(), /First\s[\s\S]*Stopped/, name);
      t.equal(await (await app.models.received(1)).ended, 'aborted', name);
      t.same(page.problems, [], name);
    }
  });

  t.test('a turn that is stopped before it is sent does not count as running', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const gate = Promise.withResolvers<void>();
    await page.page.route('**/v1/conversations', async (route) => {
      if (route.request().method() === 'POST') await gate.promise;
      await route.continue();
    });
    await page.say('First');
    await page.button('Stop').click();
    gate.resolve();
    await page.page.locator('.session', { hasText: 'First' }).waitFor();
    await page.button('New chat').click();
    await page.ask('Second');
    t.notMatch(await page.page.locator('.session', { hasText: 'First' }).innerText(), /running/);
    t.equal(app.models.requests.length, 1, 'the model was asked the second only');
    t.same(page.problems, []);
  });

  t.test('a failed turn says why, and can be retried', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.respond({ status: 401 });
    const failed = await page.ask('Hello');
    t.equal(await failed.getAttribute('data-status'), 'failed');
    t.ok((await failed.getByRole('alert').innerText()).length > 10);
    app.models.respond({ text: 'Hello again' });
    await failed.getByRole('button', { name: 'Retry' }).click();
    await page.page.getByText('Hello again').waitFor();
    t.equal(await page.turns.count(), 1, 'in place of the failed one');
    t.same(page.problems, []);
  });

  t.test('reasoning is shown folded', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ reasoning: 'Let me think.', text: 'Done.' });
    const turn = await page.ask('Think');
    t.notOk(await turn.getByText('Let me think.').isVisible());
    await turn.getByText('Reasoning').click();
    t.ok(await turn.getByText('Let me think.').isVisible());
    t.same(page.problems, []);
  });

  t.test('without the live surface, answers stream over chat completions', async (t) => {
    const app = await startPlayground(t, { surfaces: '  playground: {}\n' });
    const page = await Playground.open(t, browser, app);
    await page.page.locator('.welcome').getByText('Tool calls do not show').waitFor();
    t.match(await page.page.locator('.sidebar').innerText(), /No list of sessions/);
    const gate = Promise.withResolvers<void>();
    app.models.enqueue({ toolCalls: [lookUp('treasure')] }, { text: ['It lies ', gate.promise, 'under the oak.'] });
    await page.say('Where is the treasure?');
    await page.page.getByText('It lies').waitFor();
    gate.resolve();
    const turn = await page.ended(0);
    t.equal(await page.answer(turn), 'It lies under the oak.');
    t.match(await turn.locator('.turn-facts').innerText(), /tokens/);
    app.models.enqueue({ text: ['Wait', new Promise(() => {})] });
    await page.say('And now?');
    await page.page.getByText('Wait').waitFor();
    await page.button('Stop').click();
    t.match(await (await page.ended(1)).innerText(), /Stopped/);
    t.match(JSON.stringify(app.asked.messages), /under the oak/, 'in one session');
    t.same(page.problems, []);
  });

  t.test('reasoning is open while it streams, and folded with its duration after', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    app.models.enqueue({
      reasoning: ['First this', gates[0]?.promise ?? '', ', then that.'],
      text: ['So', gates[1]?.promise ?? '', ' be it.'],
    });
    await page.say('Think');
    const reasoning = page.page.locator('.reasoning');
    await reasoning.getByText('First this').waitFor();
    t.ok(await reasoning.locator('.spinner').isVisible());
    t.equal(await reasoning.locator('.reasoning-time').count(), 0);
    gates[0]?.resolve();
    await page.page.getByText('So', { exact: true }).waitFor();
    await reasoning.getByText('then that').waitFor({ state: 'hidden' });
    t.match(await reasoning.locator('summary').innerText(), /Reasoning\s+\d+(\.\d+)? m?s/);
    await reasoning.locator('summary').click();
    gates[1]?.resolve();
    await page.ended(0);
    t.ok(await reasoning.getByText('then that').isVisible(), 'a reader who opened it keeps it open');
    t.same(page.problems, []);
  });

  t.test('an empty answer says so, also after a reload', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ text: '' }, { toolCalls: [lookUp('treasure')] }, { text: 'Found.' });
    const turn = await page.ask('Say nothing');
    await turn.getByText('The answer is empty').waitFor();
    await page.ask('Say something');
    t.equal(await page.page.getByText('The answer is empty').count(), 1);
    await page.page.reload();
    await page.turns.nth(1).waitFor();
    t.equal(await page.page.getByText('The answer is empty').count(), 1);
    t.same(page.problems, []);
  });

  t.test('an agent that is picked before a new chat is shown is the one that answers', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.page.evaluate(`{
      const select = document.querySelector('select[aria-label=Agent]');
      document.querySelector('.new-chat').click();
      select.value = 'bare';
      select.dispatchEvent(new Event('change', { bubbles: true }));
    }`);
    await page.rendered();
    t.equal(await page.agent.inputValue(), 'bare');
    await page.page.getByText('Talk to bare').waitFor();
    t.equal(await page.message.getAttribute('placeholder'), 'Message bare');
    await page.ask('Who are you?');
    t.equal(app.asked.messages[0]?.role, 'user', 'the agent without a prompt answers');
    await page.page.evaluate(`{
      const select = document.querySelector('select[aria-label=Agent]');
      select.value = 'assistant'; // as a browser restores a form, without an event
    }`);
    await page.button('New chat').click();
    await page.rendered();
    t.equal(await page.agent.inputValue(), 'bare', 'the picker is what the page has');
    t.same(page.problems, []);
  });
}
