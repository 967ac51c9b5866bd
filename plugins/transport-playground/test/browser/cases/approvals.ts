import { setTimeout } from 'node:timers/promises';
import type { Browser, Locator } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

const SURFACES = '  websocket: {}\n  conversations: {}\n  approvals: {}\n  playground: {}\n';
const guarded = (more = '') => `  guarded: { model: fast, tools: [desk], approve: [desk]${more} }\n`;

/**
 * Opens a page whose agent asks before it looks something up, and the topics that it has looked up.
 */
async function openGuarded(t: Test, browser: Browser, more = '') {
  const topics: string[] = [];
  const lookup = (topic: string) => {
    topics.push(topic);
    return `All about ${topic}`;
  };
  const app = await startPlayground(t, { surfaces: SURFACES, yaml: guarded(more), lookup });
  const page = await Playground.open(t, browser, app);
  await page.agent.selectOption('guarded');
  const says = (text: string, ...asked: string[]) => app.models.enqueue({ toolCalls: asked.map(lookUp) }, { text });
  return { app, page, topics, says };
}

/** Opens such a page, and asks for one topic. @param answer comes once the call was decided. */
async function askGuarded(t: Test, browser: Browser, answer = 'Here it is.', more = '') {
  const { app, page, topics, says } = await openGuarded(t, browser, more);
  says(answer, 'treasure');
  return { app, page, topics, turn: await page.ask('Where is the treasure?') };
}

/** Waits until a card shows a state. */
const shows = (card: Locator, state: string) => card.locator('.tool-state').getByText(state, { exact: true }).waitFor();

/** Waits until the answer has this text. */
const answered = (page: Playground, text: string) => page.page.getByText(text, { exact: true }).waitFor();

export async function approvals(t: Test, browser: Browser): Promise<void> {
  t.test('AP-2 a person approves a call by a button, and it runs once', async (t) => {
    const { page, topics, turn } = await askGuarded(t, browser, 'It lies under the oak.');
    const card = page.cards.first();
    t.match(
      await card.innerText(),
      /lookup\s+topic: "treasure"\s+needs approval\s+Arguments\s+.+"treasure"\s+\}\s+Approve\s+Deny/s,
    );
    t.same(topics, []);
    await page.button('Approve desk/lookup').focus();
    await page.page.keyboard.press('Enter');
    await answered(page, 'It lies under the oak.');
    await page.ended(0);
    t.same(topics, ['treasure']);
    t.equal(await page.turns.count(), 1, 'the answer goes on where it stopped');
    t.equal(await page.cards.count(), 1);
    t.equal(await card.getAttribute('data-status'), 'ok');
    t.equal(await page.button(/^(Approve|Deny)/).count(), 0);
    t.match(await turn.locator('.turn-facts').innerText(), /1 tool call$/);
    t.same(page.problems, []);
  });

  t.test('AP-2 a call that a person denies does not run', async (t) => {
    const { app, page, topics } = await askGuarded(t, browser, 'Then I did not look.');
    await page.button('Deny desk/lookup').click();
    await answered(page, 'Then I did not look.');
    await shows(page.cards.first(), 'denied');
    t.match(app.asked.messages.at(-1), { role: 'tool', content: 'A person denied the call. It did not run.' });
    t.same(topics, []);
    t.same(page.problems, []);
  });

  t.test('AP-4 of several calls each is decided, and nothing runs before the last', async (t) => {
    const { page, topics, says } = await openGuarded(t, browser);
    says('One of them.', 'treasure', 'secret');
    await page.ask('Look up both');
    const [first, second] = [page.cards.nth(0), page.cards.nth(1)];
    await first.getByRole('button', { name: /^Approve/ }).click();
    await shows(first, 'approved');
    t.same(topics, []);
    await second.getByRole('button', { name: /^Deny/ }).click();
    await answered(page, 'One of them.');
    t.same(topics, ['treasure']);
    t.equal(await first.getAttribute('data-status'), 'ok');
    await shows(second, 'denied');
    t.same(page.problems, []);
  });

  t.test('AP-4 an ordinary message denies what waits, also what is half decided', async (t) => {
    const { app, page, topics } = await openGuarded(t, browser);
    app.models.enqueue({ toolCalls: [lookUp('treasure'), lookUp('secret')] }, { text: 'Fine.' });
    await page.ask('Look up both');
    const note = page.page.locator('#waiting-note');
    t.equal((await note.innerText()).trim(), '2 tool calls wait for your decision. Sending a message denies them.');
    t.equal(await page.message.getAttribute('aria-describedby'), 'waiting-note');
    await page.cards
      .first()
      .getByRole('button', { name: /^Approve/ })
      .click();
    await page.ask('Never mind');
    await shows(page.cards.nth(0), 'denied');
    await shows(page.cards.nth(1), 'denied');
    t.equal(await note.count(), 0);
    t.equal(await page.button(/^(Approve|Deny)/).count(), 0);
    t.same(topics, []);
    t.same(page.problems, []);
  });

  t.test('AP-3 a line that denies works too', async (t) => {
    const { page, topics } = await askGuarded(t, browser);
    await page.ask('deny all');
    await answered(page, 'Here it is.');
    await shows(page.cards.first(), 'denied');
    t.same(topics, []);
    t.same(page.problems, []);
  });

  t.test('after a reload the buttons are there again', async (t) => {
    const { page, topics } = await askGuarded(t, browser);
    await page.page.reload();
    await page.settled();
    await shows(page.cards.first(), 'needs approval');
    t.equal(await page.cards.count(), 1);
    await page.button('Approve desk/lookup').click();
    await answered(page, 'Here it is.');
    t.same(topics, ['treasure']);
    t.same(page.problems, []);
  });

  t.test('AP-4 an approval that comes too late is a denial, of which the agent is told', async (t) => {
    const { page, topics } = await askGuarded(t, browser, 'Too late.', ', approvalExpires: 1s');
    await setTimeout(1100);
    await page.button('Approve desk/lookup').click();
    await page.page.getByText('was denied: nobody approved it in time').first().waitFor();
    await answered(page, 'Too late.');
    await shows(page.cards.first(), 'denied');
    t.same(topics, []);
    t.same(page.problems, []);
  });

  t.test('a failed answer to a decision is retried, and the call does not run again', async (t) => {
    const { app, page, topics } = await openGuarded(t, browser);
    app.models.enqueue({ toolCalls: [lookUp('treasure')] }, { status: 401 }, { text: 'Here it is.' });
    await page.ask('Where is the treasure?');
    await page.button('Approve desk/lookup').click();
    await page.page.getByRole('alert').waitFor();
    await page.button('Retry').click();
    await answered(page, 'Here it is.');
    t.same(topics, ['treasure']);
    t.equal(await page.cards.count(), 1);
    t.same(page.problems, []);
  });

  t.test('AP-3 a line that denies is shown, also where the agent hides its tools', async (t) => {
    const { page, topics } = await askGuarded(t, browser, undefined, ', toolVisibility: none');
    await page.ask('deny all');
    await answered(page, 'Here it is.');
    await shows(page.cards.first(), 'denied');
    t.same(topics, []);
    t.same(page.problems, []);
  });

  t.test('AP-6 a call that another client approved is shown as approved', async (t) => {
    const { app, page, topics } = await askGuarded(t, browser, undefined, ', toolVisibility: none');
    const { body } = await app.request('GET', '/v1/approvals');
    const [{ id }] = (body as { data: [{ id: string }] }).data;
    await app.request('POST', `/v1/approvals/${id}`, {}, { approve: true });
    await page.ask('And now?');
    await shows(page.cards.first(), 'approved');
    t.same(topics, ['treasure']);
    t.same(page.problems, []);
  });

  for (const [visibility, shown, button] of [
    ['names', /lookup\s+needs approval\s+This agent does not show/, 'Approve desk/lookup'],
    ['none', /An action\s+needs approval\s+This agent does not show/, 'Approve the action'],
  ] as const) {
    t.test(`AP-6 the card shows what the visibility ${visibility} allows`, async (t) => {
      const { page, topics, says } = await openGuarded(t, browser, `, toolVisibility: ${visibility}`);
      says('Done.', 'treasure');
      await page.ask('Look');
      const card = page.cards.first();
      t.match(await card.innerText(), shown);
      t.notMatch(await card.innerText(), /treasure/);
      await page.button(button).click();
      await answered(page, 'Done.');
      t.same(topics, ['treasure']);
      t.same(page.problems, []);
    });
  }

  t.test('a message is changed after a line that denied, and the other version begins at that message', async (t) => {
    const { app, page } = await askGuarded(t, browser);
    await page.ask('deny all');
    await answered(page, 'Here it is.');
    app.models.respond(({ body }) => ({ text: `Answer to ${body.messages.at(-1)?.content}` }));
    await page.ask('And now?');
    await page.ask('And then?');
    const change = async (turn: number, text: string) => {
      await page.turns.nth(turn).getByLabel('Edit and send again').click();
      await page.page.getByLabel('Changed message').fill(text);
      await page.page.keyboard.press('Enter');
    };
    await change(1, 'deny all');
    await page.page.getByText('This line decided about a call. It cannot be changed').waitFor();
    await page.button('Dismiss').click();
    await change(2, 'And later?');
    await answered(page, 'Answer to And later?');
    const said = app.asked.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
    t.same(said, ['Where is the treasure?', 'And later?']);
    t.same(page.problems, []);
  });
}
