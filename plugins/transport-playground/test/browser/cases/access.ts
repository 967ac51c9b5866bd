import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground, TOKEN } from '../support/server.js';

/** The one agent of a project, and a token for that project. */
const BEARER = `  billing: { model: fast, project: acme, tools: [desk] }
auth:
  bearer:
    tokens:
      - { name: page, project: acme, token: ${TOKEN} }
projects:
  acme: {}
`;

export async function access(t: Test, browser: Browser): Promise<void> {
  t.test('the page asks for a token, shows a refusal, and keeps the token in its tab only', async (t) => {
    const app = await startPlayground(t, { yaml: BEARER });
    const page = await Playground.open(t, browser, app);
    t.match(await page.page.locator('.server').innerText(), /Token needed/);
    t.same(page.problems, [], 'no request is made without a token');
    const field = page.page.getByLabel('Token', { exact: true });
    await field.fill('wrong-token-of-no-caller');
    await field.press('Enter');
    await page.page.getByText('The server refused this token').waitFor();
    t.match(await page.page.locator('.server').innerText(), /Token refused/);
    t.equal(await field.inputValue(), 'wrong-token-of-no-caller', 'it can be mended');
    await page.page.getByLabel('Show the token').check();
    t.equal(await field.getAttribute('type'), 'text');
    await page.page.getByLabel('Show the token').uncheck();
    t.equal(await field.getAttribute('type'), 'password');
    t.match(page.problems.splice(0), [/401/], 'which the browser reports');
    await field.fill('copied-with-an-ellipsis…');
    await field.press('Enter');
    await eventually(async () => (await field.getAttribute('aria-invalid')) === 'true');
    await page.page.getByText('The server refused this token').waitFor();
    t.same(page.problems, [], 'what cannot be a token is not sent');
    await field.fill(TOKEN);
    await field.press('Enter');
    await eventually(async () => /Token accepted/.test(await page.page.locator('.server').innerText()));
    await page.page.getByRole('dialog').waitFor({ state: 'hidden' });

    t.equal(await page.page.evaluate('sessionStorage["plugboard.token"]'), TOKEN);
    t.equal(await page.page.evaluate('JSON.stringify(localStorage)'), '{}');
    t.same(await page.context.cookies(), []);
    t.notMatch(page.page.url(), TOKEN);
    t.notMatch(await page.page.content(), TOKEN);

    await page.page.reload();
    await page.settled();
    t.match(await page.page.locator('.server').innerText(), /Token accepted/, 'a reload keeps it');
    await page.button(/^Access/).click();
    await page.button('Forget token').click();
    await eventually(async () => /Token needed/.test(await page.page.locator('.server').innerText()));
    t.equal(await page.page.evaluate('sessionStorage["plugboard.token"] ?? ""'), '');
    t.same(page.problems, []);
  });

  t.test('each socket is opened with an ephemeral token of its own, never with the token', async (t) => {
    const app = await startPlayground(t, { yaml: BEARER });
    const page = await Playground.open(t, browser, app);
    const cdp = await page.context.newCDPSession(page.page);
    const handshakes: string[] = [];
    await cdp.send('Network.enable');
    cdp.on('Network.webSocketWillSendHandshakeRequest', ({ request }) => handshakes.push(JSON.stringify(request)));
    await page.enterToken(TOKEN);
    await page.page.getByText('Talk to billing').waitFor();
    t.equal(await page.answer(await page.ask('First')), 'First');
    await page.page.reload();
    await page.settled();
    await page.turns.first().waitFor();
    t.equal(await page.answer(await page.ask('Second')), 'Second');
    const sent = handshakes.map((text) => /openai-insecure-api-key\.(svce_\w{38})/.exec(text)?.[1]);
    t.equal(sent.length, 2);
    t.equal(new Set(sent).size, 2, 'each is used once');
    t.notMatch(handshakes.join(), TOKEN);
    const issued = app.accessLog.filter(({ route }) => route === '/v1/ephemeral_tokens');
    t.match(issued, [{ status: 200 }, { status: 200 }]);
    t.same(page.problems, []);
  });

  t.test('a token sees the agents of its project, and runs turns with live tool calls', async (t) => {
    const app = await startPlayground(t, { yaml: BEARER });
    const page = await Playground.open(t, browser, app);
    await page.enterToken(TOKEN);
    await page.page.getByText('Talk to billing').waitFor();
    t.same(await page.agent.locator('option').allTextContents(), ['billing']);
    app.models.enqueue({ toolCalls: [lookUp('time')] }, { text: 'Noon.' });
    const turn = await page.ask('What time is it?');
    t.equal(await page.answer(turn), 'Noon.');
    t.match(await page.cards.first().innerText(), /lookup/);
    t.same(await page.sessionTitles(), ['What time is it?']);
    t.same(page.problems, []);
  });

  t.test('an open server is shown as open, without a token field', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    t.match(await page.page.locator('.server').innerText(), /Server\s+Ready\s+Access\s+Open, no token\s+v\d/);
    const isCut = '[...document.querySelectorAll(".server-row > *")].some((one) => one.scrollWidth > one.clientWidth + 1)';
    t.notOk(await page.page.evaluate(isCut), 'nothing is cut');
    t.notOk(await page.page.getByRole('dialog').isVisible());
    t.same(await page.agent.locator('option').allTextContents(), ['assistant', 'bare', 'fast']);
    t.same(await page.page.evaluate('Array.from(document.querySelectorAll("optgroup"), ({ label }) => label)'), [
      'Agents',
      'Raw models, without tools',
    ]);
    t.same(page.problems, []);
  });

  t.test('agents that a reload of the server adds and removes show without a reload of the page', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const file = join(app.started.folder, 'plugboard.yaml');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace('  bare:', '  added:'));
    await app.started.server.reload();
    const options = () => page.agent.locator('option').allTextContents();
    await eventually(async () => String(await options()) === 'assistant,added,fast');
    await page.agent.selectOption('added');
    await page.page.getByText('Talk to added').waitFor();
    await writeFile(file, text);
    await app.started.server.reload();
    await page.page.getByText('Talk to assistant').waitFor();
    t.same(await options(), ['assistant', 'bare', 'fast']);
    t.same(page.problems, []);
  });

  t.test('a server that goes away is shown as unreachable, and a message is not lost silently', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ text: 'Hello' });
    await page.ask('Hello');
    await app.stop();
    const turn = await page.ask('Are you there?');
    t.equal(await turn.getAttribute('data-status'), 'failed');
    t.match(await turn.locator('.asked').innerText(), 'Are you there?');
    t.match(await turn.getByRole('alert').innerText(), /connection|reached/);
  });

  t.test('GET / leads a browser to the page', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.page.goto(app.url);
    await page.settled();
    t.equal(page.page.url(), `${app.url}/playground`);
    t.equal(await page.page.title(), 'Plugboard');
    t.same(page.problems, []);
  });

  t.test('a refused token is marked, and is there to be mended after a reload too', async (t) => {
    const app = await startPlayground(t, { yaml: BEARER });
    const page = await Playground.open(t, browser, app);
    const field = page.page.getByLabel('Token', { exact: true });
    await page.button('Copy the command').click();
    t.equal(await page.clipboard(), 'npx plugboard token create --project default --name playground');
    await field.fill(`${TOKEN}s`);
    await field.press('Enter');
    await page.page.getByText('The server refused this token').waitFor();
    const [border, ring, bad] = await page.page.evaluate<string[]>(`(() => {
      const { borderColor, outlineColor } = getComputedStyle(document.querySelector('#token'));
      return [borderColor, outlineColor, getComputedStyle(document.querySelector('#token-state')).color];
    })()`);
    t.same([border, ring], [bad, bad]);
    await page.page.reload();
    await page.settled();
    await eventually(async () => (await field.inputValue()) === `${TOKEN}s`);
    await field.press('End');
    await field.press('Backspace');
    await field.press('Enter');
    await page.page.getByText('Talk to billing').waitFor();
    page.problems.splice(0); // the browser reports 401
  });

  t.test('a token that ends in the middle of a turn is noticed, and the turn goes on', async (t) => {
    const app = await startPlayground(t, { yaml: BEARER });
    const page = await Playground.open(t, browser, app);
    const field = page.page.getByLabel('Token', { exact: true });
    await page.enterToken(TOKEN);
    await page.page.getByText('Talk to billing').waitFor();
    const gate = Promise.withResolvers<void>();
    app.models.enqueue({ text: ['Half ', gate.promise, 'and whole.'] });
    await page.say('Go on');
    await page.page.getByText('Half').waitFor();
    const body = { error: { message: 'Incorrect API key provided', type: 'invalid_request_error', code: 'invalid_api_key' } };
    await page.page.route('**/v1/conversations*', (route) => route.fulfill({ status: 401, json: body }));
    await page.page.getByText('The server refused this token').waitFor();
    t.match(await page.page.locator('.server').innerText(), /Token refused/);
    await page.page.unroute('**/v1/conversations*');
    gate.resolve();
    await page.page.getByText('Half and whole.', { exact: true }).waitFor();
    await field.press('Enter');
    await page.page.getByRole('dialog').waitFor({ state: 'hidden' });
    t.equal(await page.answer(await page.ended(0)), 'Half and whole.');
  });

  t.test('a token of another project begins a new chat, with what was typed', async (t) => {
    const other = 'a-token-of-another-project';
    const third = 'a-second-token-of-that-project';
    const yaml = BEARER.replace(
      'projects:',
      `      - { name: other, project: beta, token: ${other} }\n      - { name: third, project: beta, token: ${third} }\nprojects:\n  beta: {}`,
    ).replace('auth:', '  clearing: { model: fast, project: beta }\nauth:');
    const app = await startPlayground(t, { yaml });
    const page = await Playground.open(t, browser, app);
    await page.enterToken(TOKEN);
    for (const mode of ['Session', 'Stateless']) {
      await page.page.locator('.chip').click();
      await page.page.getByRole('radio', { name: mode }).check();
      await page.page.keyboard.press('Escape');
      await page.ask(`A secret in the mode ${mode}`);
    }
    await page.message.fill('A draft');
    await page.button(/^Access/).click();
    await page.enterToken(other);
    await page.page.getByText('Talk to clearing').waitFor();
    t.equal(await page.message.inputValue(), 'A draft');
    // what was announced to screen readers goes last
    await eventually(async () => !/secret|No conversation/.test(await page.page.content()));
    t.notMatch(await page.page.evaluate('JSON.stringify(sessionStorage)'), /secret/);
    t.notMatch(page.page.url(), '#');
    await page.ask('Hello');
    t.same(app.asked.messages.length, 1);
    t.equal(await page.agent.inputValue(), 'clearing');

    await page.button(/^Access/).click();
    await page.enterToken(other);
    t.equal(await page.turns.count(), 1, 'the same token leaves a stateless conversation as it is');

    await page.page.locator('.chip').click();
    await page.page.getByRole('radio', { name: 'Session' }).check();
    await page.page.keyboard.press('Escape');
    await page.ask('Hello again');
    await page.button(/^Access/).click();
    await page.enterToken(third);
    await page.page.getByText('Token accepted').waitFor();
    t.equal(await page.turns.count(), 1, 'another token of the same project leaves a session as it is');
  });
}
