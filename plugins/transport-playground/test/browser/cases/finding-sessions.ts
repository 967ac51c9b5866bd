import { readFile } from 'node:fs/promises';
import { eventually } from '@plugboard/testing';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { Playground } from '../support/playground.js';
import { lookUp, startPlayground } from '../support/server.js';

const MARKUP = '<img src=x onerror=alert(1)> **bold** ../../etc/passwd \u202egpj.exe';

export async function findingSessions(t: Test, browser: Browser): Promise<void> {
  t.test('sessions that other clients began have the title of their first message', async (t) => {
    const app = await startPlayground(t);
    app.models.respond({ text: 'Noted.' });
    await app.chat({ model: 'assistant', session_id: 'mine', messages: [{ role: 'user', content: 'Where is my order?' }] });
    await app.chat({ model: 'bare', session_id: 'odd', messages: [{ role: 'user', content: MARKUP }] });
    const page = await Playground.open(t, browser, app);
    t.same(await page.sessionTitles(), [MARKUP, 'Where is my order?'], 'markup is text');
    await page.ask('A third one');
    await eventually(async () => (await page.sessionTitles())[0] === 'A third one');
    const { body } = await app.get('/v1/conversations');
    t.match(body, { data: [{ title: 'A third one' }, { metadata: {} }, { metadata: {} }] }, 'metadata of other clients stays');
    t.same(page.problems, []);
  });

  t.test('sessions are searched, and filtered by agent and state', async (t) => {
    const app = await startPlayground(t);
    const gate = Promise.withResolvers<void>();
    for (let n = 0; n < 40; n++) {
      const items = [{ type: 'message', role: 'user', content: n % 2 ? `Invoice ${n}` : `Parcel ${n}` }];
      await app.request('POST', '/v1/conversations', {}, { agent: n % 4 ? 'assistant' : 'bare', items });
    }
    const page = await Playground.open(t, browser, app);
    const search = page.page.getByLabel('Search sessions');
    const shows = (titles: readonly string[]) =>
      eventually(async () => JSON.stringify(await page.sessionTitles()) === JSON.stringify(titles));
    await search.fill('INVOICE 3');
    await shows(['Invoice 39', 'Invoice 37', 'Invoice 35', 'Invoice 33', 'Invoice 31', 'Invoice 3']);
    await search.fill("%' OR 1=1 --");
    await page.page.getByText('No session matches.').waitFor();
    await page.button('Show all').click();
    await eventually(async () => (await page.sessionTitles()).length === 30);
    t.equal(await search.inputValue(), '');

    await page.button('Filter sessions').click();
    await page.page.locator('.choice select').first().selectOption('bare');
    await eventually(async () => (await page.sessionTitles()).length === 10);
    t.same((await page.sessionTitles())[0], 'Parcel 36');
    await page.page.locator('.choice select').first().selectOption('');
    app.models.enqueue({ text: ['Slowly', gate.promise] });
    await page.page.keyboard.press('Escape');
    await page.say('It runs');
    await page.page.getByText('Slowly').waitFor();
    await page.button('Filter sessions').click();
    await page.page.locator('.choice select').nth(1).selectOption('idle');
    await eventually(async () => !(await page.sessionTitles()).includes('It runs'));
    gate.resolve();
    await page.ended(0);
    await page.page.keyboard.press('Escape');
    t.same(page.problems, []);
  });

  t.test('a session is exported whole, as JSON and as Markdown', async (t) => {
    const app = await startPlayground(t, { lookup: () => 'under ``` the oak' });
    app.models.enqueue({ toolCalls: [lookUp('treasure')] }, { text: 'Under the **oak**.' });
    await app.chat({ model: 'assistant', session_id: 's', messages: [{ role: 'user', content: MARKUP }] });
    const { body } = await app.get('/v1/conversations');
    const [{ id } = { id: '' }] = (body as { data: { id: string }[] }).data;
    const items = Array.from({ length: 20 }, (_, at) => ({
      type: 'message',
      role: at % 2 ? 'assistant' : 'user',
      content: `line ${at}`,
    }));
    for (let n = 0; n < 6; n++) await app.request('POST', `/v1/conversations/${id}/items`, {}, { items });

    const page = await Playground.open(t, browser, app);
    const save = async (action: string) => {
      const [download] = await Promise.all([page.page.waitForEvent('download'), page.sessionAction(MARKUP, action)]);
      return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') };
    };
    const json = await save('Export as JSON');
    t.match(json.name, /^img-src-x-onerror-alert-1-bold-etc-passwd-gpj-exe\.json$/);
    const whole = JSON.parse(json.text);
    t.match(whole, { id, key: 's', agent: 'assistant', title: MARKUP });
    t.equal(whole.items.length, 123, 'over pages');
    const markdown = await save('Export as Markdown');
    t.match(markdown.name, /\.md$/);
    t.match(markdown.text, /^# \\<img src=x onerror=alert\(1\)\\> \\\*\\\*bold/);
    t.match(markdown.text, '````\nunder ``` the oak\n````', 'a fence that the text cannot close');
    t.match(markdown.text, /## Agent\n\nUnder the \*\*oak\*\*\./);
    t.equal(markdown.text.match(/^line 19$/gm)?.length, 6);

    await app.request('DELETE', `/v1/conversations/${id}`, {});
    await page.sessionAction(MARKUP, 'Export as JSON');
    await page.page.getByText('The session was not exported.').waitFor();
    t.same(
      page.problems.filter((problem) => !problem.includes('404')),
      [],
    );
  });
}
