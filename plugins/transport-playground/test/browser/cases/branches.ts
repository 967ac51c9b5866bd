import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { startPlayground } from '../support/server.js';

/** Changes the message of a turn and sends it. */
async function edit(page: Playground, turn: number, text: string) {
  await page.turns.nth(turn).getByLabel('Edit and send again').click();
  await page.page.getByLabel('Changed message').fill(text);
  await page.page.keyboard.press('Enter');
  await page.page.locator('.asked').getByText(text, { exact: true }).waitFor();
  await page.ended(turn);
}

/** The messages that are shown. */
const asked = (page: Playground) => page.page.locator('.asked').allInnerTexts();

/** Which version of a message is shown, for example `1/2`; empty if there is one only. */
const version = async (page: Playground, turn: number) =>
  (await page.turns.nth(turn).locator('.versions span').allInnerTexts()).join();

export async function branches(t: Test, browser: Browser): Promise<void> {
  t.test('a message is changed and sent again, and every version stays within reach', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.respond(({ body }) => ({ text: `Answer to ${body.messages.at(-1)?.content}` }));
    for (const text of ['one', 'two', 'three']) await page.ask(text);
    await edit(page, 1, 'TWO');
    t.same(await asked(page), ['one', 'TWO'], 'what followed is in the other version');
    await eventually(async () => (await version(page, 1)) === '2/2');
    t.equal(await version(page, 0), '');
    const said = app.asked.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
    t.same(said, ['one', 'TWO']);
    t.equal((await page.sessionTitles()).length, 1, 'one entry for all');

    await edit(page, 0, 'ONE');
    await eventually(async () => (await version(page, 0)) === '2/2');
    await page.button('Previous version').click();
    await eventually(async () => (await asked(page)).length === 2);
    t.same(await asked(page), ['one', 'TWO'], 'the version that was used last');
    t.equal(await version(page, 0), '1/2');
    t.equal(await version(page, 1), '2/2');
    await page.turns.nth(1).getByLabel('Previous version').click();
    await eventually(async () => (await asked(page)).length === 3);
    t.same(await asked(page), ['one', 'two', 'three']);
    t.equal(await version(page, 1), '1/2');

    await page.page.reload();
    await page.settled();
    await eventually(async () => (await version(page, 1)) === '1/2');
    t.equal((await page.sessionTitles()).length, 1);
    await page.page.locator('.session-more').first().click();
    await page.page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await eventually(async () => (await page.sessionTitles()).length === 0);
    t.pass('all versions are deleted together');
    t.same(page.problems, []);
  });

  t.test('two agents answer the same message side by side', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const gate = Promise.withResolvers<void>();
    app.models.respond(({ body }) =>
      body.messages[0]?.role === 'system' ? { text: 'I am the assistant' } : { text: ['I am ', gate.promise, 'bare'] },
    );
    await page.button('Compare two agents').click();
    const first = page.page.getByLabel('First conversation', { exact: true });
    const second = page.page.getByLabel('Second conversation', { exact: true });
    t.equal(await page.page.getByLabel('Second agent', { exact: true }).inputValue(), 'bare');
    await page.say('Who are you?');
    await first.locator('.turn-foot').waitFor();
    t.match(await first.innerText(), /Who are you\?\s+I am the assistant/);
    await second.getByText('I am').waitFor();
    await second.getByRole('button', { name: 'Stop' }).click();
    await second.getByText('Stopped').waitFor();
    t.notMatch(await first.innerText(), /Stopped/, 'each column is stopped by itself');
    gate.resolve();
    await second.getByRole('button', { name: 'Retry' }).click();
    await second.getByText('I am bare').waitFor();
    await second.locator('.turn-foot').waitFor();
    await page.ask('And now?');
    await eventually(async () => (await page.page.locator('.turn-foot').count()) === 4);
    await page.page.reload();
    await page.settled();
    await eventually(async () => (await page.turns.count()) === 4);
    const { body } = await app.request('GET', '/v1/conversations');
    const { data } = body as { data: { id: string; agent: string; metadata: Record<string, string> }[] };
    const of = (agent: string) => data.find((one) => one.agent === agent);
    t.equal(of('bare')?.metadata.compared_with, of('assistant')?.id);
    await page.button('Close the second conversation').click();
    await eventually(async () => (await page.turns.count()) === 2);
    t.match(await page.page.locator('.transcript').innerText(), /assistant/);
    t.same(page.problems, []);
  });

  t.test('a second agent receives the last message of the first', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app, { width: 360, height: 700 });
    await page.ask('Who are you?');
    await page.button('Compare two agents').click();
    const second = page.page.getByLabel('Second conversation', { exact: true });
    await second.getByRole('button', { name: 'Who are you?' }).click();
    await second.locator('.turn-foot').waitFor();
    const [one, other] = await Promise.all([
      page.page.getByLabel('First conversation', { exact: true }).boundingBox(),
      second.boundingBox(),
    ]);
    t.ok((other?.y ?? 0) >= (one?.y ?? 0) + (one?.height ?? 0) - 1, 'below each other on a narrow screen');
    t.equal(await page.page.evaluate('document.documentElement.scrollWidth'), 360);
    t.same(page.problems, []);
  });

  t.test('side by side, each conversation scrolls by itself, below its own header', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.respond(({ body }) => ({ text: `Answer to ${body.messages.at(-1)?.content}\n\n${'A line.\n\n'.repeat(40)}` }));
    await page.ask('Who are you?');
    await page.button('Compare two agents').click();
    const first = page.page.getByLabel('First conversation', { exact: true });
    const second = page.page.getByLabel('Second conversation', { exact: true });
    const scrolled = () => page.page.evaluate<number[]>('[...document.querySelectorAll(".pane")].map((pane) => pane.scrollTop)');
    await second.getByText('Talk to bare').waitFor();
    t.equal((await scrolled())[1], 0, 'the second one opens at its beginning');
    const [head, bar] = [await first.locator('.column-head').boundingBox(), await page.page.locator('.top').boundingBox()];
    t.equal(Math.round((head?.y ?? 0) - (bar?.y ?? 0) - (bar?.height ?? 0)), 1, 'nothing is above the header');
    await page.say('And now?');
    await eventually(async () => (await page.page.locator('.turn-foot').count()) === 3);
    await page.rendered();
    await first.evaluate((pane) => pane.scrollTo(0, 100));
    await page.button('Newest').waitFor();
    const [one = 0, other = 0] = await scrolled();
    t.ok(one === 100 && other > 300, `${one}, ${other}`);
    await page.button('Newest').click();
    await page.button('Newest').waitFor({ state: 'detached' });
    t.same(page.problems, []);
  });

  t.test('side by side, a message is changed in one conversation, and the draft stays with the one that is left', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.respond(({ body }) => ({ text: `Answer to ${body.messages.at(-1)?.content}` }));
    await page.button('Compare two agents').click();
    await page.say('one');
    await eventually(async () => (await page.page.locator('.turn-foot').count()) === 2);
    await page.message.fill('A draft');
    const second = page.page.getByLabel('Second conversation', { exact: true });
    await second.getByLabel('Edit and send again').click();
    await page.page.getByLabel('Changed message').fill('ONE');
    await page.page.keyboard.press('Enter');
    await second.getByText('Answer to ONE').waitFor();
    await eventually(async () => (await second.locator('.versions span').allInnerTexts()).join() === '2/2');
    t.same(await asked(page), ['one', 'ONE']);
    await page.button('Close the first conversation').click();
    await eventually(async () => (await page.turns.count()) === 1);
    t.equal(await page.message.inputValue(), 'A draft');
    t.same(page.problems, []);
  });

  t.test('a changed message waits in words for the turn that runs', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.ask('First');
    const goOn = await page.askSlowly(app, 'Second');
    await page.turns.first().getByRole('button', { name: 'Edit and send again' }).click();
    await page.page.locator('#edited').fill('Changed');
    await page.page.keyboard.press('Enter');
    await page.page.getByRole('alert').getByText('A turn of this session runs').waitFor();
    t.equal(await page.page.locator('#edited').inputValue(), 'Changed');
    goOn();
    await page.page.getByText('Slowly but surely.', { exact: true }).waitFor();
    t.equal(await page.page.locator('#edited').inputValue(), 'Changed');
    t.same(page.problems, []);
  });

  t.test('a message stays where it is when another version of it is shown', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app, { width: 360, height: 740 });
    app.models.respond({ text: 'A long answer. '.repeat(150) });
    for (const text of ['one', 'two', 'three']) await page.ask(text);
    await edit(page, 1, 'TWO');
    await page.ask('four');
    await eventually(async () => (await version(page, 1)) === '2/2');
    for (const [label, shown] of [
      ['Previous version', '1/2'],
      ['Next version', '2/2'],
    ] as const) {
      const button = page.turns.nth(1).getByLabel(label);
      await button.scrollIntoViewIfNeeded();
      const top = async () => (await page.turns.nth(1).boundingBox())?.y ?? Number.NaN;
      await page.rendered();
      const before = await top();
      await button.click();
      await eventually(async () => (await version(page, 1)) === shown);
      await eventually(async () => Math.abs((await top()) - before) < 2);
      await page.rendered();
      t.ok(Math.abs((await top()) - before) < 2, `${before} and ${await top()}`);
    }
    t.same(page.problems, []);
  });
}
