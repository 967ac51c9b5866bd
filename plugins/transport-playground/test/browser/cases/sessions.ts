import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

export async function sessions(t: Test, browser: Browser): Promise<void> {
  t.test('a reload shows the session again, and the conversation continues', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.enqueue({ toolCalls: [lookUp('treasure')] }, { text: 'Under the oak.' });
    await page.ask('Where is the treasure?');
    t.same(await page.sessionTitles(), ['Where is the treasure?']);
    await page.page.reload();
    await page.settled();
    t.equal(await page.turns.count(), 1);
    t.equal(await page.answer(page.turns.first()), 'Under the oak.');
    t.match(await page.cards.first().innerText(), /lookup/);
    app.models.enqueue({ text: 'Dig.' });
    await page.ask('What now?');
    t.match(JSON.stringify(app.asked.messages), /Where is the treasure\?.*Under the oak\..*What now\?/);
    t.same(page.problems, []);
  });

  t.test('a turn that runs during a reload is followed to its end', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    const goOn = await page.askSlowly(app);
    await page.page.reload();
    await page.page.getByText('Slowly').waitFor();
    t.match(await page.turns.first().locator('.asked').innerText(), 'How do you work?');
    goOn();
    const turn = await page.ended(0);
    t.equal(await page.answer(turn), 'Slowly but surely.');
    t.equal(await page.turns.count(), 1);
    t.same(page.problems, []);
  });

  t.test('sessions are listed, opened, renamed, forked and deleted', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.respond(({ body }) => ({ text: `Answer ${body.messages.filter(({ role }) => role === 'user').length}` }));
    await page.ask('First topic');
    await page.button('New chat').click();
    await page.ask('Second topic');
    t.same(await page.sessionTitles(), ['Second topic', 'First topic']);

    await page.sessionAction('First topic', 'Rename');
    await page.page.getByLabel('Name', { exact: true }).fill('Renamed topic');
    await page.page.getByLabel('Name', { exact: true }).press('Enter');
    await page.page.getByText('Renamed topic').waitFor();

    await page.page.getByTitle('Renamed topic', { exact: true }).click();
    await page.page.locator('.turn', { hasText: 'First topic' }).waitFor();
    await page.sessionAction('Renamed topic', 'Fork');
    await page.page.locator('.session[data-open=true]').getByTitle('Renamed topic (copy)', { exact: true }).waitFor();
    await page.page.locator('.turn', { hasText: 'First topic' }).waitFor();
    t.equal(await page.answer(await page.ask('More')), 'Answer 2', 'the copy has the history');
    await page.page.getByTitle('Renamed topic', { exact: true }).click();
    await eventually(async () => (await page.turns.count()) === 1);
    t.pass('the original has not changed');

    await page.sessionAction('Renamed topic', 'Delete');
    await page.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await eventually(async () => (await page.sessionTitles()).length === 2);
    t.same((await page.sessionTitles()).sort(), ['Renamed topic (copy)', 'Second topic']);
    t.ok(await page.page.locator('.welcome').isVisible(), 'an empty chat follows the deleted one');
    t.same(page.problems, []);
  });

  t.test('a completed answer is retried as another version, so that the first answer is kept', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    for (const text of ['One', 'Two', 'Three']) app.models.enqueue({ text });
    await page.ask('Count');
    await page.ask('Count on');
    await page.button('Retry').click();
    await page.page.getByText('Three').waitFor();
    await page.ended(1);
    t.same(await page.page.locator('.asked').allInnerTexts(), ['Count', 'Count on']);
    t.same(
      app.asked.messages.filter(({ role }) => role === 'user').map(({ content }) => content),
      ['Count', 'Count on'],
    );
    await page.turns.nth(1).getByText('2/2').waitFor();
    t.equal((await page.sessionTitles()).length, 1, 'in one entry');
    t.same(page.problems, []);
  });

  t.test('a session can have a chosen key, and without a key nothing is stored', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.respond({ text: 'Noted.' });
    await page.button(/^Session play-/).click();
    await page.page.getByLabel('Session key').fill('alice:42');
    await page.button('Use').click();
    await page.button('Session alice:42').waitFor();
    await page.ask('I am Alice');
    await app.chat({ model: 'assistant', session_id: 'alice:42', messages: [{ role: 'user', content: 'Who am I?' }] });
    t.match(JSON.stringify(app.asked.messages), /I am Alice.*Who am I\?/, 'any client continues it');

    await page.button('Session alice:42').click();
    await page.page.getByRole('radio', { name: 'Stateless' }).check();
    await page.page.keyboard.press('Escape');
    await page.ask('One');
    await page.ask('Two');
    const said = app.asked.messages.filter(({ role }) => role !== 'system').map(({ content }) => content);
    t.same(said, ['One', 'Noted.', 'Two'], 'the page sends the whole conversation');
    t.equal((await page.sessionTitles()).length, 1, 'and the server lists the one session only');
    t.same(page.problems, []);
  });

  t.test('a long session is read from its end', async (t) => {
    const app = await startPlayground(t);
    const items = Array.from({ length: 20 }, (_, at) => ({
      type: 'message',
      role: at % 2 ? 'assistant' : 'user',
      content: `line ${at}`,
    }));
    const { body } = await app.request('POST', '/v1/conversations', {}, { agent: 'assistant', items });
    const { id } = body as { id: string };
    for (let round = 1; round < 7; round++) await app.request('POST', `/v1/conversations/${id}/items`, {}, { items });
    const page = await Playground.open(t, browser, app, { address: `#${id}` });
    const before = await page.turns.count();
    await page.page.locator('markdown-text .block').first().waitFor();
    await page.page.evaluate('transcript.scrollTo(0, 0)');
    const oldest = await page.turns.first().elementHandle();
    const place = () => oldest?.evaluate((turn) => Math.round(turn.getBoundingClientRect().top));
    const top = await place();
    await page.button('Show earlier turns').click();
    await eventually(async () => (await page.turns.count()) > before);
    t.equal(await page.turns.count(), 70);
    await page.rendered();
    t.ok(Math.abs(((await place()) ?? 0) - (top ?? 0)) < 60, 'what the reader sees keeps its place');
    t.equal(await page.button('Show earlier turns').count(), 0);
    t.same(page.problems, []);
  });

  t.test('a second click on the button of a menu closes it, and the button of another session moves it', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    for (const text of ['One', 'Two']) {
      app.models.enqueue({ text: 'Yes.' });
      await page.button('New chat').click();
      await page.ask(text);
    }
    const open = page.page.locator(':popover-open');
    for (const name of ['Actions for Two', 'Filter sessions', /^Session play-/]) {
      await page.button(name).click();
      await open.waitFor();
      await page.button(name).click();
      await open.waitFor({ state: 'hidden' });
    }
    await page.button('Actions for One').click();
    await open.waitFor();
    await page.button('Actions for Two').click();
    await page.rendered();
    const [menu, button] = [await open.boundingBox(), await page.button('Actions for Two').boundingBox()];
    t.ok(menu && button && Math.abs(menu.y - button.y - button.height) < 20, 'below its button');
    await page.page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.page.getByRole('dialog').getByText('Two', { exact: true }).waitFor();
    t.same(page.problems, []);
  });
}
