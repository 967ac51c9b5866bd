import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

const WIDE = `A${'very'.repeat(60)}long word.\n\n\`\`\`\n${'x'.repeat(300)}\n\`\`\`\n\n| ${'column | '.repeat(12)}\n| ${'--- | '.repeat(12)}\n| ${'value | '.repeat(12)}`;

export async function layout(t: Test, browser: Browser): Promise<void> {
  t.test('the page fits a screen of 360 pixels, and every control can be reached', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app, { width: 360, height: 740 });
    const overflow = () => page.page.evaluate('document.documentElement.scrollWidth - innerWidth');
    app.models.enqueue({ toolCalls: [lookUp('treasure')] }, { text: WIDE });
    await page.ask(`Where ${'is'.repeat(80)}?`);
    await page.cards.first().locator('summary').click();
    await page.page.locator('.turn-facts summary').click();
    await page.page.locator('.timeline').waitFor();
    t.equal(await overflow(), 0);
    t.equal(await page.page.evaluate('transcript.scrollWidth - transcript.clientWidth'), 0);
    await page.button('Open the menu').click();
    await page.button('New chat').waitFor();
    t.equal(await overflow(), 0);
    await page.page.mouse.click(350, 400);
    await page.button('New chat').waitFor({ state: 'hidden' });
    await page.button('Events').click();
    await page.button('Close the inspector').waitFor();
    t.equal(await overflow(), 0);
    await page.button('Close the inspector').click();
    t.ok(await page.button('Send').isVisible());
    t.same(page.problems, []);
  });

  t.test('the transcript follows the answer until the reader scrolls up', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const gate = Promise.withResolvers<void>();
    const lines = Array.from({ length: 80 }, (_, at) => `line ${at}\n\n`);
    app.models.enqueue({ text: [...lines, gate.promise, ...lines, 'the end'] });
    await page.say('Go on');
    await page.page.getByText('line 79').waitFor();
    t.ok(await page.page.getByText('line 79').isVisible());
    await page.page.evaluate('transcript.scrollTo(0, 0)');
    await page.button('Newest').waitFor();
    gate.resolve();
    await page.ended(0);
    t.equal(await page.page.evaluate('transcript.scrollTop'), 0, 'it stays where the reader is');
    await page.button('Newest').click();
    await page.button('Newest').waitFor({ state: 'detached' });
    t.same(page.problems, []);
  });

  t.test('the transcript follows an answer that is rendered late', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const shown = Promise.withResolvers<void>();
    await page.page.route('**/markdown*.js', async (route) => {
      await shown.promise; // as on a slow network
      await route.continue();
    });
    app.models.enqueue({ text: '# One\n'.repeat(80) });
    await page.ask('Go on');
    t.equal(await page.page.locator('markdown-text .block').count(), 0, 'it is not rendered yet');
    shown.resolve();
    await page.page.locator('markdown-text .block').first().waitFor();
    await page.rendered();
    t.ok(await page.page.evaluate('transcript.scrollHeight - transcript.scrollTop - transcript.clientHeight < 1'));
    t.equal(await page.button('Newest').count(), 0);

    // The text grows after the page has scrolled, and before it is told so.
    await page.page.evaluate('transcript.scrollBy(0, -40)');
    await page.rendered();
    await page.page.evaluate(`(() => {
      transcript.scrollTo(0, 1e9);
      document.querySelector('markdown-text').style.paddingBottom = '2000px';
    })()`);
    await page.rendered();
    t.equal(await page.button('Newest').count(), 0, 'the reader has not scrolled up');
    t.same(page.problems, []);
  });

  for (const [touch, least] of [
    [false, 24],
    [true, 44],
  ] as const) {
    t.test(`every target has at least ${least} pixels ${touch ? 'where a finger points' : 'for a mouse'}`, async (t) => {
      const app = await startPlayground(t);
      const page = await Playground.open(t, browser, app, { width: touch ? 360 : 1280, touch });
      app.models.enqueue({ toolCalls: [lookUp('treasure')] }, { text: '```js\nlet a;\n```' });
      await page.ask('Where?');
      await page.cards.first().locator('summary').click();
      const small = () =>
        page.page.evaluate<string[]>(`[...document.querySelectorAll('button, summary, select, label:has(input), .server-foot a')]
          .filter((one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
          .map((one) => [one, one.getBoundingClientRect()])
          .filter(([, { width, height }]) => width < ${least} || height < ${least})
          .map(([one, { width, height }]) => one.outerHTML.slice(0, 120) + ' ' + width + ' x ' + height)`);
      t.same(await small(), []);
      await page.button(/^Session play-/).click();
      t.same(await small(), [], 'with the popover of the session');
      await page.page.keyboard.press('Escape');
      await page.button('Code').click();
      t.same(await small(), [], 'with the code');
      await page.page.getByRole('tab', { name: 'Events' }).click();
      t.same(await small(), [], 'with the events');
      await page.button('Close the inspector').click();
      if (touch) await page.button('Open the menu').click();
      await page.button('Actions for Where?').click();
      t.same(await small(), [], 'with the menu of a session');
      t.same(page.problems, []);
    });
  }

  t.test('sizes follow the size of text that the reader has chosen', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const size = () => page.page.evaluate<number>('parseFloat(getComputedStyle(document.querySelector("#message")).fontSize)');
    const before = await size();
    await page.page.evaluate('document.documentElement.style.fontSize = "32px"');
    t.equal(await size(), 2 * before);
    t.equal(await page.page.evaluate('document.documentElement.scrollWidth - innerWidth'), 0);
    await page.page.setViewportSize({ width: 360, height: 740 });
    await page.button(/^Session play-/).click();
    const { x = -1, y = -1, width = 0, height = 0 } = (await page.page.locator('#mode').boundingBox()) ?? {};
    t.ok(x >= 0 && y >= 0 && x + width <= 360 && y + height <= 740, 'a popover fits the screen, and scrolls');
  });

  t.test('light and dark follow the system', async (t) => {
    const app = await startPlayground(t);
    const colours = [];
    for (const scheme of ['light', 'dark'] as const) {
      const page = await Playground.open(t, browser, app, { scheme });
      colours.push(await page.page.evaluate('getComputedStyle(document.body).backgroundColor'));
      t.same(page.problems, []);
    }
    t.same(colours, ['rgb(255, 255, 255)', 'rgb(21, 23, 28)']);
  });

  t.test('when cards close and nothing is left to scroll, no button leads to the end', async (t) => {
    const yaml = '  guarded: { model: fast, tools: [desk], approve: [desk] }\n';
    const app = await startPlayground(t, { yaml });
    const page = await Playground.open(t, browser, app);
    await page.agent.selectOption('guarded');
    app.models.enqueue({ toolCalls: ['one', 'two', 'three', 'four'].map(lookUp) }, { text: 'Done.' });
    await page.ask('Look up all');
    for (let call = 0; call < 4; call++) {
      await page.page.locator('#transcript').evaluate('document.querySelector("#transcript").scrollTo(0, 0)');
      if (call === 0) await page.button('Newest').waitFor();
      await page.cards.nth(call).getByRole('button', { name: 'Deny desk/lookup' }).click();
    }
    await page.page.getByText('Done.', { exact: true }).waitFor();
    await page.ended(0);
    t.equal(await page.button('Newest').count(), 0);
    t.same(page.problems, []);
  });

  t.test('an image of a message is above its text, and a finger does not hit what removes it', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app, { width: 360, height: 740, touch: true });
    const png = await page.page.evaluate<string>(`(() => {
      const canvas = document.createElement('canvas');
      return canvas.toDataURL().split(',')[1];
    })()`);
    const file = { name: 'a.png', mimeType: 'image/png', buffer: Buffer.from(png, 'base64') };
    await page.page.locator('#image-files').setInputFiles([file]);
    const [image, button] = [
      await page.page.locator('.thumbnails img').boundingBox(),
      await page.button('Remove image 1').boundingBox(),
    ];
    t.ok(image && button && button.x >= image.x + image.width, 'the button is beside the image');
    const turn = await page.ask('What is this?');
    const [shown, text] = [await turn.locator('.asked img').boundingBox(), await turn.locator('.asked p').boundingBox()];
    t.ok(shown && text && text.y >= shown.y + shown.height);
    t.same(page.problems, []);
  });
}
