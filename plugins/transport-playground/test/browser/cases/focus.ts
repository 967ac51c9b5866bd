import { eventually } from '@plugboard/testing';
import type { Browser, Request } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

/** The name of what has the focus; empty if nothing that can be used has it. */
const FOCUSED = `(() => {
  const { activeElement: active } = document;
  if (active === document.body || active.matches(':disabled') || !active.checkVisibility()) return '';
  return active.id || active.ariaLabel || active.className || active.innerText || active.localName;
})()`;

/** The names of the buttons that can be pressed now. */
const BUTTONS = `[...document.querySelectorAll('button')]
  .filter((one) => !one.disabled && one.checkVisibility() && one.role !== 'tab' && !one.closest('[inert]'))
  .filter((one) => !document.querySelector('dialog[open]') || one.closest('dialog'))
  .map((one) => one.ariaLabel || one.textContent.trim().replace(/\\s+/g, ' '))`;

const CODE = '```js\nlet a = 1;\n```';

/** Returns what waits until nothing is requested and everything is shown. */
function quietOf(page: Playground): () => Promise<void> {
  const requested = new Set<Request>();
  page.page.on('request', (request) => requested.add(request));
  page.page.on('requestfinished', (request) => requested.delete(request));
  page.page.on('requestfailed', (request) => requested.delete(request));
  return async () => {
    await page.rendered();
    while (requested.size > 0) {
      await eventually(() => requested.size === 0);
      await page.rendered(); // what was read may lead to another request
    }
  };
}

export async function focus(t: Test, browser: Browser): Promise<void> {
  t.test('no button takes the focus away, whatever it replaces', async (t) => {
    const yaml = '  guarded: { model: fast, tools: [desk], approve: [desk] }\n';
    const app = await startPlayground(t, { yaml });
    const page = await Playground.open(t, browser, app);
    const quiet = quietOf(page);
    const gate = Promise.withResolvers<void>();
    app.models.respond(({ body }) => {
      const said = String(body.messages.at(-1)?.content);
      if (said === 'For ever') return { text: ['Begun', gate.promise] };
      if (said === 'Ask') return { toolCalls: [lookUp('one'), lookUp('two')] };
      return { text: `Answer to ${said}.\n\n${CODE}` };
    });
    const begin = async () => {
      await page.page.evaluate('sessionStorage.clear()');
      await page.page.goto(`${app.url}/playground`);
      await page.page.reload();
      await page.settled();
    };
    const states: Record<string, () => Promise<void>> = {
      'a message with versions': async () => {
        await page.ask('One');
        await page.turns.first().getByLabel('Edit and send again').click();
        await page.page.getByLabel('Changed message').fill('Two');
        await page.page.keyboard.press('Enter');
        await page.page.getByText('2/2').waitFor();
        await page.ended(0);
      },
      'two conversations': async () => {
        await page.ask('One');
        await page.button('Compare two agents').click();
        await page.page.getByLabel('Second conversation', { exact: true }).waitFor();
      },
      'a turn that runs, with the inspector': async () => {
        await page.button('Code').click();
        await page.say('For ever');
        await page.page.getByText('Begun').waitFor();
      },
      'calls that wait': async () => {
        await page.agent.selectOption('guarded');
        await page.ask('Ask');
      },
      'a dialog': async () => {
        await page.ask('One');
        await page.button('About this agent').click();
        await page.page.getByLabel('Temperature').fill('1');
      },
    };
    const buttons = () => page.page.evaluate<string[]>(BUTTONS);
    const pressed = new Set<string>();
    for (const [state, enter] of Object.entries(states)) {
      let before: string[] = [];
      const reenter = async () => {
        await begin();
        await enter();
        await page.rendered();
        before = await buttons();
      };
      await reenter();
      const others = before.filter((name) => !pressed.has(name) && !/^(Session|Actions for|One|Ask|For ever)\b/.test(name));
      t.comment(`${state}: ${others.join(', ')}`);
      t.ok(others.length > 0);
      for (const name of new Set(others)) {
        pressed.add(name);
        if (String(await buttons()) !== String(before)) await reenter();
        await page.page.getByRole('button', { name, exact: true }).first().focus();
        await page.page.keyboard.press('Enter');
        await quiet();
        t.not(await page.page.evaluate(FOCUSED), '', `${state}: ${name}`);
      }
    }
    gate.resolve(); // the server has nothing to wait for when it stops
    t.same(page.problems, []);
  });

  t.test('the focus stays on Retry and on the buttons of the versions', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const focused = () => page.page.evaluate<string>(FOCUSED);
    await page.ask('One');
    await page.button('Retry').focus();
    await page.page.keyboard.press('Enter');
    await page.page.getByText('2/2').waitFor();
    await page.ended(0);
    await eventually(async () => /Retry|small/.test(await focused()));
    t.ok(await page.button('Retry').evaluate((button) => button.matches(':focus')));
    await page.button('Previous version').focus();
    await page.page.keyboard.press('Enter');
    await page.page.getByText('1/2').waitFor();
    await eventually(async () => (await focused()) === 'Next version'); // the other one is disabled
    await page.page.keyboard.press('Enter');
    await page.page.getByText('2/2').waitFor();
    await eventually(async () => (await focused()) === 'Previous version');
    t.same(page.problems, []);
  });

  t.test('what is pressed in a conversation that was left within the same frame does nothing', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.ask('One');
    const asked = app.models.requests.length;
    for (const name of ['Retry', 'Edit and send again']) {
      await page.page.evaluate(`(() => {
        const named = (name) => [...document.querySelectorAll('button')].find((one) => (one.ariaLabel || one.innerText.trim()) === name);
        const button = named(${JSON.stringify(name)});
        named('New chat').click();
        button.click();
      })()`);
      await page.page.getByText('Talk to assistant').waitFor();
      t.equal(await page.page.locator('#edited').count(), 0);
      await page.page.locator('.session-open').first().click();
      await page.turns.first().waitFor();
    }
    t.equal(app.models.requests.length, asked);
    t.equal(await page.turns.count(), 1);
    t.same(page.problems, []);
  });
}
