import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { saying, type TestServer } from '../../../../../test/support/test-server.js';
import { Network } from '../support/network.js';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

/** Makes a session with a key. Returns the address of a page that shows it. */
async function sessionWith(app: TestServer, key: string, agent = 'assistant'): Promise<string> {
  const { body } = await app.request('POST', '/v1/conversations', {}, { agent, id: key });
  return `#${(body as { id: string }).id}`;
}

/** Waits until a turn shows a text. */
const shows = (page: Playground, text: string) => page.turns.getByText(text, { exact: true }).first().waitFor();

/** What a reader sees of the turns, without times. */
const seen = async (page: Playground) =>
  (await page.turns.allInnerTexts()).map((text) => text.replace(/\d+(\.\d+)? m?s/g, 'TIME').replace(/\s+/g, ' '));

export async function watching(t: Test, browser: Browser): Promise<void> {
  t.test('a turn that another client runs shows from its beginning, also when it is opened in its middle', async (t) => {
    const found = Promise.withResolvers<string>();
    const app = await startPlayground(t, { lookup: () => found.promise });
    const address = await sessionWith(app, 'shared');
    const [half, rest] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    app.models.enqueue(
      { text: 'I look it up.', toolCalls: [lookUp('treasure')] },
      { text: ['It ', half.promise, 'lies ', rest.promise, 'under the oak.'] },
    );
    const client = await app.open(saying('Where is the **treasure**?', { session_id: 'shared' }));
    await app.models.received(1);
    const page = await Playground.open(t, browser, app, { address });
    await shows(page, 'I look it up.');
    await page.cards.first().getByText('running').waitFor();
    t.equal(await page.page.locator('.asked').innerText(), 'Where is the **treasure**?');
    await page.page.locator('.session-note').getByText('running').waitFor();
    found.resolve('Under the oak');
    await shows(page, 'It');
    half.resolve();
    await shows(page, 'It lies');
    t.ok(await page.button('Stop').isVisible());
    rest.resolve();
    await shows(page, 'It lies under the oak.');
    await page.ended(0);
    await client.end();
    await page.page.locator('.session-note').getByText('now').waitFor();
    const live = await seen(page);
    await page.page.reload();
    await page.ended(0);
    t.same(await seen(page), live, 'the same after a reload');
    t.same(page.problems, []);
  });

  t.test('the first turn of a session shows while it runs, before the session is stored', async (t) => {
    const app = await startPlayground(t);
    const gate = Promise.withResolvers<void>();
    app.models.enqueue({ text: ['Slowly ', gate.promise, 'but surely.'] });
    const client = app.stream(saying('How do you work?', { session_id: 'fresh' }));
    await app.models.received(1);
    const page = await Playground.open(t, browser, app);
    await page.page.locator('.session', { hasText: 'How do you work?' }).getByRole('button').first().click();
    await shows(page, 'Slowly');
    gate.resolve();
    await client;
    await shows(page, 'Slowly but surely.');
    await page.ended(0);
    t.same(await page.page.locator('.asked').allInnerTexts(), ['How do you work?']);
    t.same(page.problems, []);
  });

  t.test('a session whose first turn fails is begun by the next message', async (t) => {
    const app = await startPlayground(t);
    const gate = Promise.withResolvers<void>();
    app.models.enqueue({ text: ['Slowly ', gate.promise] });
    const client = app.open(saying('First', { session_id: 'fresh' }));
    await app.models.received(1);
    const page = await Playground.open(t, browser, app);
    await page.page.locator('.session', { hasText: 'First' }).getByRole('button').first().click();
    await shows(page, 'Slowly');
    (await client).leave();
    await page.page.getByText('The server no longer has this session').waitFor();
    gate.resolve();
    t.match(await (await page.ended(0)).innerText(), /First(.|\n)*Not kept/);
    const turn = await page.ask('Second');
    t.equal(await turn.getAttribute('data-status'), 'completed');
    t.same(page.problems, []);
  });

  t.test('two tabs on one session show each turn as it runs, and either stops it', async (t) => {
    const app = await startPlayground(t);
    const one = await Playground.open(t, browser, app);
    await one.ask('First');
    const other = await Playground.openTab(one.context, app.url, new URL(one.page.url()).hash);
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      const count = await to.turns.count();
      const gate = Promise.withResolvers<void>();
      app.models.enqueue({ text: ['Slowly ', gate.promise, `but surely ${count}.`] });
      await from.page.bringToFront();
      await from.say(`Message ${count}`);
      for (const page of [from, to]) await shows(page, 'Slowly');
      gate.resolve();
      for (const page of [from, to]) await shows(page, `Slowly but surely ${count}.`);
      for (const page of [from, to]) await page.ended(count);
    }
    app.models.enqueue({ text: ['Endless', new Promise(() => {})] });
    await one.say('Go on');
    await shows(other, 'Endless');
    await other.button('Stop').click();
    for (const page of [one, other]) {
      const turn = await page.ended(3);
      t.match(await turn.innerText(), /Go on\s+Endless(.|\n)*Not kept/);
      t.ok(await turn.getByRole('button', { name: 'Retry' }).isVisible());
    }
    t.same(await seen(one), await seen(other));
    t.same([...one.problems, ...other.problems], []);
  });

  t.test('a turn that waits shows as queued, and one that fails stays with its message', async (t) => {
    const app = await startPlayground(t);
    const address = await sessionWith(app, 'shared');
    const page = await Playground.open(t, browser, app, { address });
    const gate = Promise.withResolvers<void>();
    app.models.enqueue({ text: ['Slowly ', gate.promise, 'but surely.'] }, { status: 400, body: { error: { message: 'No.' } } });
    const first = app.stream(saying('First', { session_id: 'shared' }));
    await shows(page, 'Slowly');
    const second = app.chat(saying('Second', { session_id: 'shared' }));
    await page.page.locator('.turn[data-status=queued]').getByText('Second').waitFor();
    gate.resolve();
    await Promise.all([first, second]);
    const turn = await page.ended(1);
    t.equal(await turn.getAttribute('data-status'), 'failed');
    t.match(await turn.innerText(), /Second(.|\n)*Not kept/);
    await page.page.reload();
    await page.ended(1);
    t.match(await page.turns.nth(1).innerText(), /Second(.|\n)*Not kept/, 'also after a reload');
    t.same(page.problems, []);
  });

  t.test('a call that waits for approval is decided in the tab that watches, or elsewhere', async (t) => {
    const surfaces = '  websocket: {}\n  conversations: {}\n  approvals: {}\n  responses: {}\n  playground: {}\n';
    const yaml = '  guarded: { model: fast, tools: [desk], approve: [desk] }\n';
    const app = await startPlayground(t, { surfaces, yaml });
    const page = await Playground.open(t, browser, app, { address: await sessionWith(app, 'shared', 'guarded') });
    const ask = (topic: string) => app.chat({ ...saying(`Where is the ${topic}?`, { session_id: 'shared' }), model: 'guarded' });
    app.models.enqueue({ toolCalls: [lookUp('treasure')] }, { text: 'Under the oak.' });
    await ask('treasure');
    await page.button('Approve desk/lookup').click();
    await shows(page, 'Under the oak.');
    await page.ended(0);
    app.models.enqueue({ toolCalls: [lookUp('map')] }, { text: 'In the chest.' });
    await ask('map');
    await page.button('Approve desk/lookup').waitFor();
    const { body } = await app.get('/v1/approvals');
    const [approval] = (body as { data: { id: string }[] }).data;
    const decision = { type: 'mcp_approval_response', approval_request_id: approval?.id, approve: true };
    await app.request('POST', '/v1/responses', {}, { model: 'guarded', conversation: 'shared', input: [decision] });
    await shows(page, 'In the chest.');
    await page.ended(1);
    t.equal(await page.turns.count(), 2, 'the answer goes on where it stopped');
    t.equal(await page.cards.nth(1).getAttribute('data-status'), 'ok');
    t.equal(await page.button(/^(Approve|Deny)/).count(), 0);
    t.same(page.problems, []);
  });

  t.test('a watched turn goes on after a lost connection, and one that ended meanwhile shows its end', async (t) => {
    const app = await startPlayground(t);
    const network = await Network.start(t, app);
    const page = await Playground.open(t, browser, network, { address: await sessionWith(app, 'shared') });
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    app.models.enqueue({ text: ['One ', gates[0].promise, 'two ', gates[1].promise, 'three.'] });
    const turn = app.stream(saying('Count', { session_id: 'shared' }));
    await shows(page, 'One');
    const cutAt = performance.now();
    network.cut();
    await page.turns.first().getByText('Reconnecting').waitFor();
    t.comment(`after ${Math.round(performance.now() - cutAt)} ms`);
    gates[0].resolve();
    network.mend(app);
    await shows(page, 'One two');
    t.equal(await page.turns.getByText('Reconnecting').count(), 0);
    network.cut();
    await page.turns.first().getByText('Reconnecting').waitFor();
    gates[1].resolve();
    await turn;
    network.mend(app);
    await shows(page, 'One two three.');
    await page.ended(0);
    t.equal(await page.page.getByText('Not kept').count(), 0);
    t.equal(await page.turns.count(), 1);
  });

  t.test('a watched turn is marked as cut off if the server that ran it is gone', async (t) => {
    const app = await startPlayground(t);
    const network = await Network.start(t, app);
    const page = await Playground.open(t, browser, network, { address: await sessionWith(app, 'shared') });
    app.models.enqueue({ text: ['Slowly ', new Promise(() => {})] });
    const client = await app.open(saying('Count', { session_id: 'shared' }));
    await shows(page, 'Slowly');
    const next = await startPlayground(t);
    await sessionWith(next, 'shared');
    network.cut();
    network.mend(next);
    const turn = await page.ended(0);
    t.match(await turn.getByRole('alert').innerText(), /The turn was cut off/);
    t.match(await turn.innerText(), /Count\s+Slowly/, 'what had arrived stays');
    t.notMatch(await page.page.content(), /_not_found/);
    t.ok(await turn.getByRole('button', { name: 'Retry' }).isVisible());
    await page.ask('Still there?');
    client.leave();
  });

  t.test('a session that the server no longer has is begun again by the next message', async (t) => {
    const app = await startPlayground(t);
    const network = await Network.start(t, app);
    const page = await Playground.open(t, browser, network, { address: await sessionWith(app, 'shared') });
    await page.ask('First');
    const next = await startPlayground(t);
    network.cut();
    await page.page.locator('.server').getByText('Reconnecting', { exact: true }).waitFor();
    network.mend(next);
    await page.page.getByText('The server no longer has this session').waitFor();
    const turn = await page.ask('Still there?');
    t.equal(await turn.getAttribute('data-status'), 'completed');
    t.same(await page.page.locator('.asked').allInnerTexts(), ['First', 'Still there?']);
    t.match((await next.get('/v1/conversations')).body, { data: [{ key: 'shared', turns: 1 }] });
    t.notMatch(await page.page.content(), /_not_found|No conversation with this id/);
  });
}
