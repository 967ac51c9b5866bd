import { eventually, ModelServer } from '@plugboard/testing';
import t from 'tap';
import { Plugboard } from '../../plugins/cli/test/plugboard.js';
import { parseHtml } from '../../plugins/transport-telegram/test/support/parse-html.js';
import { TelegramServer, TOKEN } from '../../plugins/transport-telegram/test/support/telegram-server.js';
import { messageOf, pressOf } from '../../plugins/transport-telegram/test/support/updates.js';
import { Victim } from './victim.js';

const SHELL = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  export default definePlugin({
    name: 'shell', apiVersion: 1, summary: 'Runs commands', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const inputSchema = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] };
      const run = { name: 'run', description: 'Runs', inputSchema, run: () => 'done' };
      ctx.contribute(ToolSources, { tools: () => [run] });
    },
  });
`;

const yaml = `
transports:
  telegram: { token: "${TOKEN}", apiRoot: "\${API_ROOT}", agent: helper }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools: { shell: { use: ./shell.mjs } }
agents:
  helper: { model: fast }
  ops: { model: fast, tools: [shell], approve: write }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;

t.test('CH-1 CH-5 CH-8 a chat with pairing, commands, an approval and a crash', async (t) => {
  const api = await TelegramServer.start();
  t.teardown(() => api.close());
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const folder = t.testdir({ 'plugboard.yaml': yaml, 'shell.mjs': SHELL });
  const victim = new Victim(t, folder, { MODEL_URL: model.url, API_ROOT: api.url });
  victim.launch();

  const transcript: string[] = [];
  const note = (who: string, text: string) => transcript.push(`${who.padEnd(9)} ${text.replaceAll('\n', ' / ')}`);
  let heard = 0;
  /** Waits for the next message of the bot. */
  const hear = async (): Promise<string> => {
    await eventually(() => api.messages.length > heard);
    const { text = '' } = parseHtml(api.messages[heard++]?.text ?? '');
    note('bot', text);
    return text;
  };
  const say = async (text: string): Promise<string> => {
    note('Ann', text);
    api.push(messageOf({ text }));
    return hear();
  };

  const [, code = ''] = /plugboard pair (\S+)/.exec(await say('Hello')) ?? [];
  const pair = new Plugboard(t, ['pair', code], { cwd: folder });
  t.equal(await pair.exit(), 0, pair.stderr);
  note('operator', `plugboard pair ${code}`);
  t.match(await hear(), /You are paired/);

  model.enqueue({ text: 'Hello, **Ann**.' });
  t.equal(await say('Hello again'), 'Hello, Ann.');

  model.enqueue({ text: ['Once upon', new Promise(() => {})] });
  note('Ann', 'Tell me a story');
  api.push(messageOf({ text: 'Tell me a story' }));
  await eventually(() => api.of('sendMessageDraft').some(({ payload }) => payload.text === 'Once upon'));
  note('draft', 'Once upon');
  t.equal(await say('/stop'), 'Stopped.');

  t.match(await say('/agent ops'), /The agent ops answers here now/);
  model.enqueue({ toolCalls: [{ name: 'shell__run', arguments: { command: 'make clean' } }] });
  t.match(await say('Clean up'), /The tool shell\/run needs approval/);
  const approve = api.messages.at(-1)?.reply_markup?.inline_keyboard[0]?.[0];
  model.enqueue({ text: 'It is clean.' });
  note('Ann', `presses "${approve?.text}"`);
  api.push(pressOf(approve?.callback_data ?? ''));
  t.equal(await hear(), 'It is clean.');

  const before = model.requests.length;
  model.enqueue({ text: ['It is', new Promise(() => {})] });
  note('Ann', 'What time is it?');
  api.push(messageOf({ text: 'What time is it?' }));
  await eventually(() => model.requests.length === before + 1);
  await victim.kill();
  note('server', 'is killed, and starts again');
  model.enqueue({ text: 'It is noon.' });
  victim.launch();
  t.equal(await hear(), 'It is noon.');
  t.match(model.requests.at(-1)?.body.messages.at(-1), { role: 'user', content: 'What time is it?' });
  t.equal(await victim.stop(), 0);
  for (const line of transcript) t.comment(line);
});
