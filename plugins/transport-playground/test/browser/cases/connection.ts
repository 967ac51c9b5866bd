import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Network } from '../support/network.js';
import { Playground } from '../support/playground.js';
import { BEARER, startPlayground, TOKEN } from '../support/server.js';

/** A page whose network can be cut. */
async function openOnNetwork(t: Test, browser: Browser) {
  const app = await startPlayground(t);
  const network = await Network.start(t, app);
  const page = await Playground.open(t, browser, network);
  return { app, network, page };
}

/** Waits until the badge of the server has this text. */
const badge = (page: Playground, text: string) => page.page.locator('.server').getByText(text, { exact: true }).waitFor();

export async function connection(t: Test, browser: Browser): Promise<void> {
  t.test('a turn whose connection is lost says so, and goes on without gaps', async (t) => {
    const { app, network, page } = await openOnNetwork(t, browser);
    const goOn = await page.askSlowly(app);
    const cutAt = performance.now();
    network.cut();
    await page.turns.first().getByText('Reconnecting').waitFor();
    await badge(page, 'Reconnecting');
    t.comment(`after ${Math.round(performance.now() - cutAt)} ms`);
    await page.message.fill('A draft');
    goOn();
    network.mend(app);
    t.equal(await page.answer(await page.ended(0)), 'Slowly but surely.');
    await badge(page, 'Ready');
    t.equal(await page.turns.getByText('Reconnecting').count(), 0);
    t.equal(await page.message.inputValue(), 'A draft');
  });

  t.test('a turn that ended while the server could not be reached is shown as it was stored', async (t) => {
    const { app, network, page } = await openOnNetwork(t, browser);
    const goOn = await page.askSlowly(app);
    network.cut();
    await page.turns.first().getByText('Reconnecting').waitFor();
    goOn();
    await eventually(async () => JSON.stringify((await app.request('GET', '/v1/conversations')).body).includes('"turns":1'));
    network.mend(app);
    t.equal(await page.answer(await page.ended(0)), 'Slowly but surely.');
    t.equal(await page.page.getByText('Not kept').count(), 0);
  });

  t.test('a turn that the server no longer has is marked as cut off, and can be retried', async (t) => {
    const { network, page, app } = await openOnNetwork(t, browser);
    const gate = Promise.withResolvers<void>();
    app.models.enqueue({ text: ['Slowly ', gate.promise] });
    await page.say('How do you work?');
    await page.page.getByText('Slowly').waitFor();
    network.cut();
    await page.turns.first().getByText('Reconnecting').waitFor();
    const other = await startPlayground(t);
    network.mend(other);
    const turn = await page.ended(0);
    t.match(await turn.getByRole('alert').innerText(), /The turn was cut off/);
    t.notMatch(await page.page.content(), /response_not_found/);
    t.match(await turn.innerText(), /How do you work\?\s+Slowly/, 'what had arrived stays');
    t.ok(await turn.getByRole('button', { name: 'Retry' }).isVisible());
    gate.resolve(); // the server that was lost has nothing to wait for when it stops
  });

  t.test('the badge follows the server while nothing runs, and a message waits to be retried', async (t) => {
    const { app, network, page } = await openOnNetwork(t, browser);
    await page.ask('First');
    const cutAt = performance.now();
    network.cut();
    await badge(page, 'Reconnecting');
    t.comment(`after ${Math.round(performance.now() - cutAt)} ms`);
    const turn = await page.ask('Second');
    t.equal(await turn.getAttribute('data-status'), 'failed');
    network.mend(app);
    await badge(page, 'Ready');
    await page.turns.nth(1).getByText('Not kept').waitFor();
    await page.turns.nth(1).getByRole('button', { name: 'Retry' }).click();
    await eventually(async () => (await page.page.locator('.turn[data-status=completed]').count()) === 2);
    t.same(await page.page.locator('.asked').allInnerTexts(), ['First', 'Second']);
  });

  t.test('a newer version of the server is said in words, and a reload keeps what was typed', async (t) => {
    const { app, network, page } = await openOnNetwork(t, browser);
    await page.page.route('**/playground/settings.json', async (route) => {
      const reply = await route.fetch();
      await route.fulfill({ response: reply, json: { ...((await reply.json()) as object), version: '9.9.9' } });
    });
    await page.message.fill('A long question that');
    t.equal(await page.page.getByText('was replaced').count(), 0);
    network.cut();
    await badge(page, 'Reconnecting');
    network.mend(app);
    await page.page.getByText('The server was replaced by version 9.9.9').waitFor();
    await page.button('Reload').click();
    await page.page.getByText('v9.9.9').waitFor();
    t.equal(await page.page.getByText('was replaced').count(), 0, 'the page is the new one');
    t.equal(await page.message.inputValue(), 'A long question that');
  });

  t.test('a token that ends in a turn is said, and entered anew the turn is there', async (t) => {
    const app = await startPlayground(t, { yaml: `  billing: { model: fast, project: acme }\n${BEARER}` });
    const page = await Playground.open(t, browser, app);
    let end = () => {};
    await page.page.routeWebSocket(/\/v1\/live/, (socket) => {
      socket.connectToServer();
      end = () => void socket.close({ code: 4401, reason: 'the token is no longer valid' });
    });
    await page.enterToken(TOKEN);
    await page.page.getByText('Talk to billing').waitFor();
    const goOn = await page.askSlowly(app);
    await page.message.fill('A draft');
    end();
    await page.page.getByRole('dialog').waitFor();
    t.match(await page.turns.first().innerText(), /token is no longer valid/);
    await page.enterToken(TOKEN);
    goOn();
    await page.page.getByText('Slowly but surely.', { exact: true }).waitFor();
    t.equal(await page.turns.count(), 1);
    t.equal(await page.message.inputValue(), 'A draft');
    t.same(page.problems, []);
  });

  t.test('a clock that jumps changes no duration', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const goOn = await page.askSlowly(app, 'How late is it?');
    await page.page.evaluate('Date.now = () => 0');
    goOn();
    const turn = await page.ended(0);
    t.match(await turn.locator('.turn-facts').innerText(), /^\d+(\.\d)? m?s/);
    t.match(await page.page.locator('.session-note').innerText(), /now$/);
    t.same(page.problems, []);
  });

  t.test('the dot of the session says whether the server is there', async (t) => {
    const { app, network, page } = await openOnNetwork(t, browser);
    const colours = () =>
      page.page.evaluate<string[]>(
        `['.chip-dot', '.server .dot'].map((one) => getComputedStyle(document.querySelector(one)).backgroundColor)`,
      );
    await badge(page, 'Ready');
    const [ready] = await colours();
    t.same(await colours(), [ready, ready]);
    network.cut();
    await badge(page, 'Reconnecting');
    const [away] = await colours();
    t.same(await colours(), [away, away]);
    t.not(away, ready);
    network.mend(app);
    await badge(page, 'Ready');
    t.same(await colours(), [ready, ready]);
  });
}
