import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Shell } from '../../../../../test/support/shell.js';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground, TOKEN } from '../support/server.js';

const BEARER = `auth: { bearer: { tokens: [{ name: page, project: default, token: ${TOKEN} }] } }\n`;

export async function code(t: Test, browser: Browser): Promise<void> {
  t.test('copied code runs and gives the same answer, with the token in a variable', async (t) => {
    const surfaces = '  websocket: {}\n  conversations: {}\n  responses: {}\n  playground: {}\n';
    const app = await startPlayground(t, { yaml: BEARER, surfaces });
    const page = await Playground.open(t, browser, app);
    await page.enterToken(TOKEN);
    await page.page.getByText('Talk to assistant').waitFor();
    await page.button(/^Session play-/).click();
    await page.page.getByRole('radio', { name: 'Stateless' }).check();
    await page.page.keyboard.press('Escape');
    app.models.respond(({ body }) => ({ text: `It's “${body.messages.at(-1)?.content}”` }));
    const turn = await page.ask(`What's $HOME in "Zürich"? \\n`);
    const answer = await page.answer(turn);
    await page.button('Code').click();

    const shell = new Shell(t, app.started.folder, { PLUGBOARD_TOKEN: TOKEN });
    const copied = async (label: string) => {
      await page.button(label).click();
      await page.page.getByLabel(`Copy as ${label}`).click();
      const text = await page.clipboard();
      t.notMatch(text, TOKEN);
      t.match(text, 'PLUGBOARD_TOKEN');
      return text;
    };
    const hasPython = (await shell.run('python3 -c "import openai"')).code === 0;
    for (const surface of ['Chat completions', 'Responses']) {
      for (const isStreamed of [false, true]) {
        await page.button('curl').click();
        await page.button(surface).click();
        await page.page.getByLabel('Streaming').setChecked(isStreamed);
        const name = `${surface}${isStreamed ? ', streamed' : ''}`;
        const { output } = await shell.run((await copied('curl')).replace('curl ', 'curl -s '));
        t.equal(isStreamed ? streamedText(output) : textOf(JSON.parse(output)), answer, `curl, ${name}`);
        await writeFile(join(app.started.folder, 'copied.mjs'), await copied('JavaScript'));
        t.equal((await shell.run('node copied.mjs')).output.trim(), answer, `JavaScript, ${name}`);
        const python = await copied('Python');
        t.match(python, /from openai import OpenAI.*model="assistant"/s);
        await writeFile(join(app.started.folder, 'copied.py'), python);
        t.same(
          await shell.run('command -v python3 > /dev/null || exit 0; python3 -m py_compile copied.py'),
          { code: 0, output: '' },
          `Python, ${name}`,
        );
        if (hasPython) t.equal((await shell.run('python3 copied.py')).output.trim(), answer, `Python runs, ${name}`);
      }
    }
    const [, frame = ''] = /-x '(.*)'/s.exec(await copied('wscat')) ?? [];
    t.match(JSON.parse(frame.replaceAll("'\\''", "'")), { type: 'response.create', model: 'assistant', store: false });
    t.equal(await page.page.getByLabel('Streaming').count(), 0, 'the live surface always streams');
    t.same(page.problems, []);
  });

  t.test('in a session, the code carries the new message and the key', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    app.models.respond({ text: 'Yes.' });
    await page.ask('First');
    await page.ask('Second');
    await page.button('Code').click();
    const key = /play-\w+/.exec(await page.button(/^Session play-/).innerText())?.[0];
    const shown = await page.page.locator('.snippet').innerText();
    t.match(shown, `"session_id": "${key}"`);
    t.match(shown, 'Second');
    t.notMatch(shown, 'First');
    t.notMatch(shown, 'PLUGBOARD_TOKEN', 'an open server needs none');
    t.equal(await page.button('Responses').count(), 0, 'the server does not have that API');
    await page.message.fill('A draft');
    await page.page.locator('.snippet', { hasText: 'A draft' }).waitFor();
    t.pass('a message that is being written is shown');
    t.same(page.problems, []);
  });

  t.test('the event log shows requests and events, with sequence numbers without a gap', async (t) => {
    const app = await startPlayground(t);
    const page = await Playground.open(t, browser, app);
    await page.button('Events').click();
    app.models.enqueue({ toolCalls: [lookUp('time')] }, { text: ['Noon', '.'] });
    await page.ask('What time is it?');
    await page.page.getByLabel('Show deltas').check();
    const rows = page.page.locator('.event');
    const labels = await page.page.locator('.event-label').allInnerTexts();
    t.ok(labels.includes('GET /v1/models'));
    t.match(labels.join('\n'), /response\.create\n(.|\n)*response\.created\n(.|\n)*response\.completed/);
    const notes = await page.page.locator('.event[data-direction=in] .event-note').allInnerTexts();
    const numbers = notes.filter((text) => text !== '').map(Number);
    t.same(
      numbers,
      numbers.map((_, at) => at),
    );
    const created = rows.filter({ hasText: 'response.created' });
    await created.locator('summary').click();
    await eventually(async () => (await created.locator('pre').innerText()) !== '');
    t.match(JSON.parse(await created.locator('pre').innerText()), { type: 'response.created', sequence_number: 0 });
    await page.button('Clear').click();
    await eventually(async () => (await created.count()) === 0);
    t.same(page.problems, []);
  });

  t.test('code has the prompt and the parameters that are tried, and runs with them', async (t) => {
    const surfaces = '  websocket: {}\n  conversations: {}\n  responses: {}\n  playground: {}\n';
    const app = await startPlayground(t, { surfaces });
    const page = await Playground.open(t, browser, app);
    app.models.respond({ text: 'Ahoy.' });
    await page.button('About this agent').click();
    await page.page.getByLabel("Prompt in place of the agent's").fill('You are a pirate.');
    await page.page.getByLabel('Temperature').fill('1.5');
    await page.page.getByLabel('Max tokens').fill('50');
    await page.page.getByLabel('Reasoning effort').selectOption('low');
    await page.page.keyboard.press('Escape');
    await page.button('Code').click();
    const shell = new Shell(t, app.started.folder);
    for (const surface of ['Chat completions', 'Responses']) {
      await page.button(surface).click();
      const { code, output } = await shell.run((await page.page.locator('.snippet').innerText()).replace('curl ', 'curl -s '));
      t.equal(code, 0);
      t.equal(textOf(JSON.parse(output)), 'Ahoy.', surface);
      t.match(app.asked, { temperature: 1.5, reasoning_effort: 'low', messages: [{ content: 'You are a pirate.' }, {}] });
      t.match(JSON.stringify(app.asked), /"max(_completion)?_tokens":50/);
    }
    await page.page.keyboard.press('Escape');
    await page.page.locator('.inspector').waitFor({ state: 'detached' });
    t.pass('Escape closes the panel');
    t.same(page.problems, []);
  });
}

/** The text of a completion or a response. */
function textOf({ choices, output }: Answer): string | undefined {
  return choices?.[0]?.message?.content ?? output?.find(({ type }) => type === 'message')?.content?.[0]?.text;
}

/** The text of an event stream of either API. */
function streamedText(body: string): string {
  const events = [...body.matchAll(/^data: (\{.*)$/gm)].map(([, text = '']) => JSON.parse(text) as Answer);
  return events
    .map(({ choices, type, delta }) => choices?.[0]?.delta?.content ?? (type === 'response.output_text.delta' ? delta : '') ?? '')
    .join('');
}

interface Answer {
  readonly type?: string;
  readonly delta?: string;
  readonly choices?: readonly {
    readonly message?: { readonly content: string };
    readonly delta?: { readonly content?: string };
  }[];
  readonly output?: readonly { readonly type: string; readonly content?: readonly { readonly text: string }[] }[];
}
