import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { startPlayground } from '../support/server.js';

/** A plugin with a tool whose answer is lost. */
const MAIL = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  const run = () => {
    throw Object.assign(new Error('the connection broke'), { effect: 'unknown' });
  };
  const send = { name: 'send', description: 'Sends a mail.', inputSchema: { type: 'object' }, effect: 'write', run };
  const tools = [send];
  export default definePlugin({
    name: 'mail', apiVersion: 1, summary: 'Sends mail', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { tools: () => tools }),
  });
`;

export async function turns(t: Test, browser: Browser): Promise<void> {
  t.test('a turn goes on when its reader leaves, and is shown again when they come back', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const goOn = await page.askSlowly(app);
    await page.button('New chat').click();
    await page.rendered();
    t.equal(await page.turns.count(), 0);
    const row = page.page.locator('.session', { hasText: 'How do you work?' });
    t.match(await row.innerText(), /running/, 'the list says so');
    app.models.enqueue({ text: 'Meanwhile.' });
    t.equal(await page.answer(await page.ask('And you?')), 'Meanwhile.', 'another conversation runs beside it');
    await row.locator('.session-open').click();
    await page.page.getByText('Slowly').waitFor();
    goOn();
    t.equal(await page.answer(await page.ended(0)), 'Slowly but surely.');
    t.equal((await app.models.received(1)).body.messages.length, 2);
    t.same(page.problems, []);
  });

  t.test('a turn that ends while another conversation is shown is there afterwards', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const goOn = await page.askSlowly(app);
    await page.button('New chat').click();
    goOn();
    const row = page.page.locator('.session', { hasText: 'How do you work?' });
    await row.getByText('now').waitFor();
    await row.locator('.session-open').click();
    await page.turns.getByText('Slowly but surely.').waitFor();
    t.equal(await page.turns.count(), 1);
    t.same(page.problems, []);
  });

  t.test('TC-2 a call of unknown effect says so, while the turn runs and later', async (t) => {
    const app = await startPlayground(t, {
      tools: '  mail: { use: ./mail.mjs }\n',
      yaml: '  mailer: { model: fast, tools: [mail] }\n',
      files: { 'mail.mjs': MAIL },
    });
    const page = await Playground.open(t, browser, app);
    await page.agent.selectOption('mailer');
    const gate = Promise.withResolvers<void>();
    app.models.enqueue({ toolCalls: [{ name: 'mail__send', arguments: {} }] }, { text: ['Well, ', gate.promise, 'who knows.'] });
    await page.say('Send it');
    const state = page.cards.first().locator('.tool-state').getByText('unknown effect', { exact: true });
    await state.waitFor();
    gate.resolve();
    await page.ended(0);
    t.equal(await page.cards.first().getAttribute('data-status'), 'unknown');
    await page.page.reload();
    await state.waitFor();
    t.same(page.problems, []);
  });

  t.test('a draft survives a reload, and belongs to its conversation', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.message.fill('A long question that');
    await page.page.reload();
    await page.settled();
    t.equal(await page.message.inputValue(), 'A long question that');
    await page.ask('First');
    await page.message.fill('Second');
    await page.button('New chat').click();
    t.equal(await page.message.inputValue(), '');
    await page.page.getByTitle('First', { exact: true }).click();
    await page.turns.first().waitFor();
    t.equal(await page.message.inputValue(), 'Second');
    t.same(page.problems, []);
  });

  t.test('another agent keeps the conversation, and the next message begins a new one', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.ask('First');
    await page.agent.selectOption('bare');
    t.equal(await page.turns.count(), 1);
    await page.page.getByText('Your next message begins a new session with bare').waitFor();
    await page.agent.selectOption('assistant');
    await page.page.getByText('Your next message begins').waitFor({ state: 'detached' });
    await page.agent.selectOption('bare');
    await page.say('Second');
    await page.page.locator('.asked', { hasText: 'Second' }).waitFor();
    await page.ended(0);
    t.equal(await page.turns.count(), 1);
    t.same(await page.sessionTitles(), ['Second', 'First']);
    t.equal(app.asked.messages.length, 1, 'without the other conversation');
    t.same(page.problems, []);
  });

  t.test('stopped and failed turns stay after a reload, and can be retried and changed', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ text: 'Yes.' }, { text: ['Once upon', new Promise(() => {})] }, { status: 401 });
    await page.ask('Are you there?');
    await page.say('Tell me a story');
    await page.page.getByText('Once upon').waitFor();
    await page.button('Stop').click();
    await page.ended(1);
    await page.ask('Another one');
    await page.page.reload();
    await page.settled();
    await page.turns.nth(2).waitFor();
    t.same(await page.page.locator('.asked').allInnerTexts(), ['Are you there?', 'Tell me a story', 'Another one']);
    t.match(await page.turns.nth(1).innerText(), /Once upon\s+Stopped\s+Not kept: the session does not have this message\./);
    t.match(await page.turns.nth(2).innerText(), /Not kept/);
    t.equal(await page.turns.nth(0).getByText('Not kept').count(), 0);
    app.models.enqueue({ text: 'A dog barked.' });
    await page.turns.nth(2).getByLabel('Edit and send again').click();
    await page.page.getByLabel('Changed message').fill('A short one');
    await page.page.keyboard.press('Enter');
    await page.page.getByText('A dog barked.').waitFor();
    await page.ended(2);
    app.models.enqueue({ text: 'A cat slept.' });
    await page.turns.nth(1).getByRole('button', { name: 'Retry' }).click();
    await page.page.getByText('A cat slept.').waitFor();
    await page.ended(2);
    await page.page.reload();
    await page.settled();
    await page.turns.nth(2).waitFor();
    t.same(await page.page.locator('.asked').allInnerTexts(), ['Are you there?', 'A short one', 'Tell me a story']);
    t.equal(await page.page.getByText('Not kept').count(), 0, 'the session has them all');
    t.equal((await page.sessionTitles()).length, 1);
    t.same(page.problems, []);
  });

  t.test('what a tab remembers is bounded, and the oldest conversation goes first', async (t) => {
    const app = await startPlayground(t, { surfaces: '  websocket: {}\n  playground: {}\n' });
    const page = await Playground.open(t, browser, app);
    const size = () => page.page.evaluate<number>('Object.values(sessionStorage).join("").length');
    for (const name of ['one', 'two', 'three']) {
      for (let turn = 0; turn < 3; turn++) {
        app.models.enqueue({ text: ['x'.repeat(240_000)] });
        await page.ask(`${name} ${turn}`);
      }
      t.ok((await size()) <= 2_000_100);
      await page.button('New chat').click();
    }
    t.ok((await size()) > 1_000_000);
    t.same(page.problems, []);
  });

  t.test('a conversation without a session stays in its tab when its reader leaves, and across a reload', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.button(/^Session play-/).click();
    await page.page.getByRole('radio', { name: 'Stateless' }).check();
    await page.page.keyboard.press('Escape');
    app.models.enqueue({ text: 'Hi.' });
    await page.ask('Remember me');
    await page.button('New chat').click();
    await page.rendered();
    t.equal(await page.turns.count(), 0);
    await page.page.reload();
    await page.settled();
    await page.page.locator('.tab-chat', { hasText: 'Remember me' }).getByRole('button').click();
    await page.turns.first().waitFor();
    t.match(await page.turns.first().innerText(), /Remember me\s+Hi\./);
    app.models.enqueue({ text: 'Yes.' });
    await page.ask('Do you?');
    t.match(JSON.stringify(app.asked.messages), /Remember me.*Hi\..*Do you\?/);
    t.same(page.problems, []);
  });

  t.test('20,000 tokens at once are all shown', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.page.evaluate(`(() => {
      let last = performance.now();
      window.longest = 0;
      const tick = (now) => { window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(tick); };
      requestAnimationFrame(tick);
    })()`);
    app.models.enqueue({ text: Array.from({ length: 20_000 }, (_, at) => (at % 12 === 0 ? 'end.\n\n' : 'word ')) });
    const turn = await page.ask('Much');
    await eventually(async () => (await turn.innerText()).length > 100_000); // long ones are rendered in parts
    const longest = await page.page.evaluate<number>('window.longest');
    t.comment(`the longest frame took ${Math.round(longest)} ms`);
    t.same(page.problems, []);
  });
}
