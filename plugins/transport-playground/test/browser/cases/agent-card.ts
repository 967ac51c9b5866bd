import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import type { TestServer } from '../../../../../test/support/test-server.js';
import { findings, openWithAxe } from '../support/axe.js';
import { Playground } from '../support/playground.js';
import { startPlayground } from '../support/server.js';

const SURFACES = '  websocket: {}\n  conversations: {}\n  agents: {}\n  playground: { suggestions: [] }\n';
const LONG = `<b>Ten kilobytes</b> ${'of a description '.repeat(600)}`;
const YAML = `  described:
    { model: fast, tools: [desk], approve: [desk], description: ${JSON.stringify(LONG)}, params: { temperature: 0.2 } }
  crowded: { model: fast, tools: [many] }
`;

/** 200 tools, one of which has a schema of 100 KB. */
const MANY = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  const field = (i) => ['field' + i, { type: 'string', description: 'x'.repeat(40) }];
  const properties = (n) => Object.fromEntries(Array.from({ length: n }, (_, i) => field(i)));
  const tools = Array.from({ length: 200 }, (_, n) => ({
    name: 'tool' + n,
    description: 'Number ' + n,
    inputSchema: { type: 'object', properties: properties(n === 7 ? 1200 : 1) },
    run: () => 'ran ' + n,
  }));
  export default definePlugin({
    name: 'many', apiVersion: 1, summary: 'Many', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { tools: () => tools }),
  });
`;

export async function agentCard(t: Test, browser: Browser): Promise<void> {
  const start = (t: Test, more = {}) =>
    startPlayground(t, {
      surfaces: SURFACES,
      yaml: YAML,
      files: { 'many.mjs': MANY },
      tools: '  many: { use: ./many.mjs }\n',
      ...more,
    });
  const openCard = async (t: Test, app: TestServer, agent: string, options = {}) => {
    const page = await openWithAxe(t, browser, app, options);
    await page.agent.selectOption(agent);
    await page.button('About this agent').click();
    const card = page.page.getByRole('dialog', { name: agent });
    await card.getByRole('heading', { name: /tool/i }).waitFor();
    return { page, card };
  };

  t.test('the card shows what an agent is made of, and runs a tool by hand', async (t) => {
    const app = await start(t, { lookup: (topic: string) => `{"about":"${topic}"}` });
    const { page, card } = await openCard(t, app, 'assistant');
    t.match(await card.innerText(), /Model\s*fast/);
    await card.getByText('Prompt', { exact: true }).click();
    await card.getByText('You are the assistant.', { exact: true }).waitFor();
    await card.getByText('Looks up a topic.').click();
    const input = card.getByLabel('Arguments as JSON');
    t.equal(await input.inputValue(), '{\n  "topic": ""\n}', 'the required arguments are there');
    await card.getByText('Schema of the arguments').click();
    await card.getByText('"additionalProperties": false').waitFor();

    await input.fill('{"topic": rain}');
    await card.getByRole('button', { name: 'Run' }).click();
    await card.getByText(/The arguments are not JSON\./).waitFor();
    t.equal(await input.inputValue(), '{"topic": rain}', 'nothing typed is lost');
    await input.fill('["rain"]');
    await card.getByRole('button', { name: 'Run' }).click();
    await card.getByText(/must be a JSON object/).waitFor();
    await input.fill('{"topic": 7}');
    await card.getByRole('button', { name: 'Run' }).click();
    await card.getByText(/^Failed/).waitFor();
    await input.fill('{"topic": "rain"}');
    await card.getByRole('button', { name: 'Run' }).click();
    await card.getByText('"about": "rain"').waitFor();
    await card.getByRole('button', { name: 'Close the card' }).click();
    await page.button('About this agent').click();
    t.equal(await input.inputValue(), '{"topic": "rain"}', 'nor when the card is closed');
    t.same(await findings(page), []);
    t.same(page.problems, []);
  });

  t.test('a tool that needs approval asks first, and a long description is text', async (t) => {
    const app = await start(t);
    const { page, card } = await openCard(t, app, 'described', { width: 360, height: 740 });
    t.match(await card.locator('.card-description').first().innerText(), /^<b>Ten kilobytes<\/b>/);
    t.equal(await page.page.evaluate('document.documentElement.scrollWidth - innerWidth'), 0);
    await card.locator('.card-tool summary').first().click();
    await card.getByLabel('Arguments as JSON').fill('{"topic": "rain"}');
    await card.getByRole('button', { name: 'Run' }).click();
    await card.getByRole('button', { name: 'Not now' }).click();
    await card.getByRole('button', { name: 'Run' }).click();
    await card.getByRole('button', { name: 'Approve and run' }).click();
    await card.getByText('All about rain').waitFor();
    t.equal(app.started.logs.filter(({ event }) => event === 'tool_run').length, 1);
    t.same(await findings(page), []);
    t.same(page.problems, []);
  });

  t.test('200 tools and a schema of 100 KB are shown and found', async (t) => {
    const app = await start(t);
    const { page, card } = await openCard(t, app, 'crowded');
    await card.getByRole('heading', { name: '200 tools' }).waitFor();
    await card.getByLabel('Find a tool').fill('tool7');
    await eventually(async () => (await card.locator('.card-tool').count()) === 11);
    await card.locator('.card-tool summary').first().click();
    await card.getByText('Schema of the arguments').click();
    await card.getByText('"field1199"').waitFor();
    await card.getByRole('button', { name: 'Run' }).click();
    await card.getByText('ran 7').waitFor();
    t.same(page.problems, []);
  });

  t.test('a prompt and parameters are tried for one session and reset', async (t) => {
    const app = await start(t);
    app.models.respond({ text: 'Ahoy.' });
    const { page, card } = await openCard(t, app, 'assistant');
    const prompt = card.getByLabel("Prompt in place of the agent's");
    await prompt.fill('You are a pirate.');
    await card.getByLabel('Temperature').fill('hot');
    await card.getByText('A number from 0 to 2.').waitFor();
    await card.getByLabel('Temperature').fill('1.5');
    await card.getByLabel('Max tokens').fill('50');
    const boxes = await Promise.all(
      ['Temperature', 'Max tokens', 'Reasoning effort'].map((name) => card.getByLabel(name).boundingBox()),
    );
    t.equal(new Set(boxes.map((box) => `${box?.y} ${box?.height}`)).size, 1, 'the fields are on one line');
    await card.getByLabel('Reasoning effort').selectOption('low');
    await page.page.keyboard.press('Escape');
    await page.page.getByText('tried here, not saved').first().waitFor();
    await page.page.reload();
    await page.settled();
    await page.page.locator('.try-note').waitFor();
    await page.ask('Who are you?');
    t.match(app.asked, { temperature: 1.5, messages: [{ role: 'system', content: 'You are a pirate.' }, { role: 'user' }] });
    t.match(JSON.stringify(app.asked), /"max(_completion)?_tokens":50/);
    t.match(app.asked, { reasoning_effort: 'low' });
    await page.ask('And now?');
    t.match(app.asked.messages[0], { content: 'You are a pirate.' }, 'each turn of the session');

    await page.button('Retry').last().click();
    await eventually(() => app.models.requests.length === 3);
    await page.ended(1);
    t.match(app.asked.messages[0], { content: 'You are a pirate.' }, 'and of its branches');

    await page.button('New chat').click();
    await page.ask('Who are you?');
    t.match(app.asked.messages[0], { content: 'You are the assistant.' }, 'not another one');
    await page.page.locator('.session-open').nth(1).click();
    await page.page.locator('.try-note').waitFor();
    await page.page.locator('.try-note').getByRole('button', { name: 'Reset' }).click();
    await page.page.locator('.try-note').waitFor({ state: 'detached' });
    await page.ask('And now?');
    t.match(app.asked.messages[0], { content: 'You are the assistant.' });
    t.notOk('temperature' in app.asked);
    t.same(page.problems, []);
  });

  t.test('without the live surface and the agents transport, a prompt can be tried too', async (t) => {
    const app = await startPlayground(t, { surfaces: '  playground: {}\n' });
    const page = await Playground.open(t, browser, app);
    app.models.respond({ text: 'Ahoy.' });
    await page.button('About this agent').click();
    await page.page.getByText('The server does not use the transport').waitFor();
    await page.page.getByLabel("Prompt in place of the agent's").fill('You are a pirate.');
    await page.page.keyboard.press('Escape');
    await page.ask('Who are you?');
    t.match(app.asked.messages[0], { role: 'system', content: 'You are a pirate.' });
    t.same(page.problems, []);
  });
}
