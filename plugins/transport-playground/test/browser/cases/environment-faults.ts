import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import type { TestServer } from '../../../../../test/support/test-server.js';
import { Network } from '../support/network.js';
import { Playground } from '../support/playground.js';
import { BEARER, startPlayground, TOKEN } from '../support/server.js';

/** Opens the page in a browser that was changed by a script. */
async function openIn(t: Test, browser: Browser, url: string, script: string): Promise<Playground> {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  t.teardown(() => context.close());
  await context.addInitScript(script);
  return Playground.openTab(context, url);
}

/** Faults around the page: of the browser, a proxy, the page's own files, a replaced server. */
export async function environmentFaults(t: Test, browser: Browser): Promise<void> {
  t.test('a browser that stores nothing, or is full, shows the whole page', async (t) => {
    const app = await startPlayground(t);
    for (const [name, script] of Object.entries({
      blocked: 'Object.defineProperty(window, "sessionStorage", { get() { throw new DOMException("no", "SecurityError"); } })',
      full: 'Storage.prototype.setItem = () => { throw new DOMException("no", "QuotaExceededError"); }',
    })) {
      const page = await openIn(t, browser, app.url, script);
      await page.agent.selectOption('bare');
      await page.message.fill('A draft');
      await page.button('New chat').click();
      t.equal(await page.message.inputValue(), 'A draft', name);
      const turn = await page.ask('Hello');
      t.equal(await page.answer(turn), 'Hello', name);
      t.same(page.problems, [], name);
    }
  });

  t.test('a copy that the browser refuses is reported', async (t) => {
    const app = await startPlayground(t);
    const refuse = 'navigator.clipboard.writeText = () => Promise.reject(new DOMException("no", "NotAllowedError"))';
    const page = await openIn(t, browser, app.url, refuse);
    const turn = await page.ask('Hello');
    await turn.getByRole('button', { name: 'Copy answer' }).click();
    await page.page.getByRole('alert').getByText('does not let this page copy').waitFor();
    t.same(page.problems, []);
  });

  t.test('a part of the page that cannot be loaded is reported, and nothing else is lost', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.page.route(/playground\/(agent-card|export|markdown)-/, (route) => route.fulfill({ status: 404 }));
    const said = page.page.getByRole('alert').getByText('This part of the page could not be loaded. Reload');
    const turn = await page.ask('Hello');
    t.equal(await page.answer(turn), 'Hello', 'without Markdown');
    await page.button('About this agent').click();
    await said.waitFor();
    await page.button('Dismiss').click();
    await page.sessionAction('Hello', 'Export as JSON');
    await said.waitFor();
    t.notMatch(page.problems.join(), /uncaught/);
  });

  t.test('an answer of a proxy is reported as one, not as invalid JSON', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.page.route('**/v1/models', (route) => route.fulfill({ contentType: 'text/html', body: '<h1>Log in</h1>' }));
    await page.page.reload();
    await page.page.getByText('The answer is not from this server').waitFor();
    t.equal(await page.page.getByText('Unexpected token').count(), 0);
    t.same(page.problems, []);
  });

  t.test('arguments and results that are nested too deep are shown unformatted', async (t) => {
    const deep = `${'['.repeat(6000)}${']'.repeat(6000)}`;
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.ask('Hello');
    const call = {
      id: 'mcp_x_1_1',
      type: 'mcp_call',
      name: 'dig',
      arguments: deep,
      output: deep,
      status: 'completed',
      error: null,
    };
    await page.page.route('**/items?*', async (route) => {
      const reply = await route.fetch();
      const { data, ...rest } = (await reply.json()) as { data: object[] };
      await route.fulfill({ json: { ...rest, data: [call, ...data] } });
    });
    await page.page.reload();
    await page.cards.locator('summary').click();
    t.match(await page.cards.locator('.data').first().innerText(), '[[[[[[');
    t.same(page.problems, []);
  });

  t.test('an address that was cut opens a new chat', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app, { address: '#conv_1,%E0%A4' });
    await page.page.getByText('Talk to assistant').waitFor();
    t.equal(await page.page.getByRole('alert').count(), 0);
    t.same(page.problems, []);
  });

  t.test('a message that is too large for a socket is reported, and can be changed', async (t) => {
    const surfaces = '  websocket: { maxFrameSize: 64kb }\n  conversations: {}\n  playground: {}\n';
    const app = await startPlayground(t, { surfaces });
    const page = await Playground.open(t, browser, app);
    await page.ask('Hello');
    const turn = await page.ask('word '.repeat(15_000));
    t.match(await turn.getByRole('alert').innerText(), /The message is too large/);
    t.match(await turn.innerText(), /Not kept: the session does not have this message/);
    await turn.getByRole('button', { name: 'Edit and send again' }).click();
    t.equal((await page.page.locator('#edited').inputValue()).length, 74_999);
  });

  t.test('a draft that is too large to be remembered drops no other one', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.page.evaluate('sessionStorage.setItem("plugboard.chat.play-other", \'{"draft":"Keep this","turns":[]}\')');
    await page.page.reload();
    await page.settled();
    await page.message.fill('x'.repeat(1_100_000));
    await page.rendered();
    t.match(await page.page.evaluate('sessionStorage.getItem("plugboard.chat.play-other")'), 'Keep this');
  });

  t.test('a server that begins to need a token asks for it, and one that stops does not', async (t) => {
    const open = await startPlayground(t);
    const locked = await startPlayground(t, { yaml: BEARER });
    const network = await Network.start(t, open);
    const page = await Playground.open(t, browser, network);
    await page.message.fill('My draft');
    const replaceBy = (app: TestServer) => {
      network.cut();
      network.mend(app); // before the page looks: it does not see the server go
    };
    replaceBy(locked);
    const dialog = page.page.getByRole('dialog');
    await dialog.waitFor({ timeout: 20_000 });
    await page.page.getByLabel('Token', { exact: true }).fill(` "Bearer ${TOKEN}" `);
    await page.page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    await page.page.getByText('Token accepted').waitFor();
    replaceBy(open);
    await page.page.getByText('Open, no token').waitFor({ timeout: 20_000 });
    t.equal(await page.message.inputValue(), 'My draft');
    t.equal(await dialog.count(), 0);
    t.notMatch(page.problems.join(), /uncaught/);
  });

  t.test('a printed page has the whole conversation', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ text: 'A line.\n\n'.repeat(60) });
    const turn = await page.ask('Tell me everything');
    await page.page.emulateMedia({ media: 'print' });
    const heights = () =>
      page.page.evaluate('[document.documentElement.scrollHeight, document.querySelector(".turn").offsetHeight]');
    await eventually(async () => {
      const [all = 0, one = 0] = (await heights()) as number[];
      return all > one && one > 1500;
    });
    t.equal(await turn.locator('.turn-actions').isVisible(), false);
    t.equal(await page.message.isVisible(), false);
  });

  t.test('enlarged four times, the conversation can be read beside the field for the next message', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app, { width: 320, height: 200 });
    await page.ask('Hello');
    const size = (of: string) => page.page.evaluate(`document.querySelector('${of}').clientHeight`) as Promise<number>;
    t.ok((await size('#transcript')) > (await size('.dock')));
    t.equal(await page.page.evaluate('document.querySelector(".composer").scrollWidth <= 320'), true);
    t.ok(await page.button('Send').isVisible());
  });
}
