import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { findings, openWithAxe } from '../support/axe.js';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

const DOT = Buffer.from('R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=', 'base64');

export async function accessibility(t: Test, browser: Browser): Promise<void> {
  for (const [scheme, width] of [
    ['light', 1280],
    ['dark', 360],
  ] as const) {
    t.test(`axe finds nothing in calls that need approval: ${scheme}, ${width} pixels wide`, async (t) => {
      const yaml = '  guarded: { model: fast, tools: [desk], approve: [desk] }\n';
      const app = await startPlayground(t, { yaml });
      const page = await openWithAxe(t, browser, app, { scheme, width });
      await page.agent.selectOption('guarded');
      app.models.enqueue({ toolCalls: [lookUp('treasure'), lookUp('secret')] });
      await page.ask('Look up both');
      await page.button('Deny desk/lookup').first().click();
      await page.page.locator('.tool[data-status=denied]').waitFor();
      t.same(await findings(page), []);
      t.same(page.problems, []);
    });
  }

  for (const [scheme, width, height] of [
    ['light', 1280, 800],
    ['dark', 1280, 800],
    ['light', 360, 740],
    ['dark', 768, 1024],
  ] as const) {
    t.test(`axe finds nothing in any state of the page: ${scheme}, ${width} pixels wide`, async (t) => {
      const app = await startPlayground(t);
      const page = await openWithAxe(t, browser, app, { scheme, width, height });
      t.same(await findings(page), [], 'empty');
      const gate = Promise.withResolvers<void>();
      app.models.enqueue(
        { reasoning: 'Hm.', toolCalls: [lookUp('treasure')] },
        {
          text: [
            '# Title\n\nText with `code` and [a link](https://a.example).\n\n',
            gate.promise,
            '```js\nlet a;\n```\n\n- [x] done\n\n| a |\n| -: |\n| 1 |\n\n> quote',
          ],
        },
      );
      await page.page.locator('#image-files').setInputFiles([{ name: 'dot.gif', mimeType: 'image/gif', buffer: DOT }]);
      await page.page.locator('.thumbnails img').waitFor();
      t.same(await findings(page), [], 'with an image to send');
      await page.say('Everything');
      await page.page.getByText('Text with').waitFor();
      t.same(await findings(page), [], 'while a turn runs');
      gate.resolve();
      const turn = await page.ended(0);
      await page.cards.first().locator('summary').click();
      t.same(await findings(page), [], 'with an answer and an open tool card');
      app.models.enqueue({ status: 401 });
      await page.ask('Fail');
      t.same(await findings(page), [], 'with a failed turn');
      await page.button(/^Session play-/).click();
      t.same(await findings(page), [], 'with the popover of the session');
      await page.page.keyboard.press('Escape');
      await page.button('Events').click();
      await page.page.locator('.event summary').first().click();
      t.same(await findings(page), [], 'with the events');
      await page.page.getByRole('tab', { name: 'Code' }).click();
      t.same(await findings(page), [], 'with the code');
      await page.button('Close the inspector').click();
      if (width < 900) await page.button('Open the menu').click();
      await page.button('Actions for Everything').click();
      t.same(await findings(page), [], 'with the menu of a session');
      await page.page.getByRole('menuitem', { name: 'Delete' }).click();
      t.same(await findings(page), [], 'with a dialog');
      t.ok(await turn.isVisible());
      t.same(page.problems, []);
    });
  }

  t.test('axe finds nothing in the token dialog', async (t) => {
    const app = await startPlayground(t, { yaml: 'auth: { bearer: {} }\n' });
    const page = await openWithAxe(t, browser, app);
    t.same(await findings(page), []);
    await page.page.keyboard.press('Escape');
    t.same(await findings(page), []);
    t.same(page.problems, []);
  });

  t.test('everything works with the keyboard alone', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const { keyboard } = page.page;
    const focused = () =>
      page.page.evaluate<string>(
        'document.activeElement === document.body ? "" : document.activeElement.ariaLabel || document.activeElement.innerText',
      );
    const tabTo = async (name: RegExp) => {
      for (let step = 0; step < 40; step++) {
        if (name.test(await focused())) return;
        await keyboard.press('Tab');
      }
      t.fail(`the keyboard does not reach ${name}`);
    };
    t.equal(await focused(), 'Message', 'the message has the focus at first');
    app.models.enqueue({ toolCalls: [lookUp('treasure')] }, { text: 'Under the oak.' });
    await keyboard.type('Where is\n');
    await page.ended(0);
    app.models.enqueue({ text: 'Two lines.' });
    await keyboard.type('One');
    await keyboard.press('Shift+Enter');
    await keyboard.type('two');
    await keyboard.press('Enter');
    await page.ended(1);
    t.equal(await page.turns.nth(1).locator('.asked').innerText(), 'One\ntwo');

    await tabTo(/^Skip/);
    await keyboard.press('Enter');
    t.equal(await focused(), 'Message');
    await tabTo(/^desk|lookup/);
    await keyboard.press('Enter');
    t.ok(await page.page.locator('.tool-body').first().isVisible(), 'a tool card opens');
    await tabTo(/^Actions for Where is/);
    await keyboard.press('Enter');
    t.match(await focused(), /Rename/, 'the menu takes the focus');
    await keyboard.press('ArrowDown');
    t.match(await focused(), /Fork/);
    await keyboard.press('ArrowUp');
    await keyboard.press('ArrowUp');
    t.match(await focused(), /Delete/);
    await keyboard.press('Escape');
    t.match(await focused(), /^Actions for/, 'and gives it back');
    await tabTo(/^Code$/);
    await keyboard.press('Enter');
    await tabTo(/^Code$/);
    await page.page.getByRole('tab', { name: 'Code' }).focus();
    await keyboard.press('ArrowLeft');
    await eventually(async () => (await focused()) === 'Events');
    await page.agent.focus();
    await keyboard.press('ArrowDown');
    t.equal(await page.agent.inputValue(), 'bare', 'another agent answers the next message');
    await page.page.getByText('begins a new session with bare').waitFor();
    t.same(page.problems, []);
  });

  t.test('shortcuts work everywhere, are listed, and leave the keys of the browser alone', async (t) => {
    const app = await startPlayground(t);
    const page = await openWithAxe(t, browser, app);
    const { keyboard } = page.page;
    const focused = () => page.page.evaluate('document.activeElement.id || document.activeElement.className');
    const gate = Promise.withResolvers<void>();
    app.models.enqueue({ text: 'One.' }, { text: ['Two', gate.promise] });
    await page.ask('First');
    await keyboard.press('Alt+Shift+KeyE');
    await page.page.getByRole('tab', { name: 'Events' }).waitFor();
    await keyboard.press('Alt+Shift+KeyE');
    await page.page.getByRole('tab', { name: 'Events' }).waitFor({ state: 'detached' });
    await page.say('Second');
    await page.page.getByText('Two').waitFor();
    await page.agent.focus();
    await page.button('Code').focus();
    await keyboard.press('Escape');
    await page.ended(1);
    t.match(await page.turns.nth(1).innerText(), /Stopped/, 'Esc stops from anywhere');
    gate.resolve();
    await keyboard.press('Shift+?');
    const list = page.page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    t.match(await list.innerText(), /New chat/);
    t.same(await findings(page), []);
    await keyboard.press('Enter');
    await list.waitFor({ state: 'hidden' });
    await keyboard.press('Alt+Shift+KeyM');
    t.equal(await focused(), 'message');
    await keyboard.press('Shift+?');
    t.equal(await page.message.inputValue(), '?', 'in a text field it is a character');
    t.ok(await list.isHidden());
    await keyboard.press('Alt+Shift+KeyN');
    await page.page.getByText('Talk to assistant').waitFor();
    await keyboard.press('Alt+Shift+KeyS');
    await eventually(async () => (await focused()) !== 'message');
    t.ok(await page.page.locator('#sidebar :focus').count(), 'the sessions have the focus');
    t.same(page.problems, []);
  });

  t.test('screen readers get one announcement per turn', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const announcer = page.page.locator('[aria-live=polite]');
    app.models.enqueue({ text: [...'A long answer in many tokens.'] });
    await page.ask('Speak');
    await announcer.getByText('Answer: A long answer in many tokens.').waitFor({ state: 'attached' });
    t.equal(await page.page.getByRole('log').getAttribute('aria-live'), 'off', 'tokens are not read out');
    t.same(page.problems, []);
  });
}
