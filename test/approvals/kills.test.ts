/**
 * A real server process with a SQLite file is killed around an approval: the call runs at most
 * once.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually, ModelServer } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { codeIn } from './support.js';

t.setTimeout(120_000);

const BIN = join(import.meta.dirname, '../../node_modules/.bin/plugboard');

/** Each run is a line in a file. The command `hang` never returns. */
const TOOL = `
  import { appendFileSync } from 'node:fs';
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  const inputSchema = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] };
  const run = ({ command }, { turnId, index }) => {
    const runs = appendFileSync('ran.txt', command + ' ' + turnId + '/' + index + '\\n');
    return process.env.HANG ? new Promise(() => {}) : 'done';
  };
  const tools = ['write', 'read'].map((effect) => ({ name: effect, description: effect, effect, inputSchema, run }));
  export default definePlugin({
    name: 'tool', apiVersion: 1, summary: 'Runs', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { tools: () => tools }),
  });
`;

/** A folder with a configuration, whose server can be started and killed. */
async function place(t: Test) {
  const folder = t.testdir({ 'package.json': '{ "type": "module" }', 'tool.mjs': TOOL });
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const yaml = `
    transports: { http: { port: 0 }, chat-completions: {} }
    sessions: { use: sqlite, path: ./sessions.db }
    models: { fast: { use: openai, baseUrl: "${models.url}", model: big-1 } }
    tools: { tool: { use: ./tool.mjs } }
    agents: { ops: { model: fast, tools: [tool], approve: ["tool/*"] } }
  `;
  await writeFile(join(folder, 'plugboard.yaml'), yaml);
  const start = async (env: NodeJS.ProcessEnv = {}) => {
    const child = spawn(BIN, ['start'], {
      cwd: folder,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    let out = '';
    child.stdout.on('data', (data) => {
      out += data;
    });
    await eventually(() => /address +http/.test(out));
    const [, url = ''] = /address +(http:\S+)/.exec(out) ?? [];
    const say = async (content: string) => {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'ops', session_id: 's', messages: [{ role: 'user', content }] }),
      });
      const { choices } = (await response.json()) as {
        readonly choices: readonly { readonly message: { readonly content: string } }[];
      };
      return choices[0]?.message.content ?? '';
    };
    const kill = async () => {
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      await exit;
    };
    return { say, kill };
  };
  const ran = () => (existsSync(join(folder, 'ran.txt')) ? readFileSync(join(folder, 'ran.txt'), 'utf8').trim().split('\n') : []);
  return { start, ran, models };
}

t.test('AP-1 AP-5 a call that waits survives kill -9, and runs once after the decision', async (t) => {
  const { start, ran, models } = await place(t);
  models.enqueue({ toolCalls: [{ name: 'tool__write', arguments: { command: 'a' } }] }, { text: 'Done.' });
  const first = await start();
  const code = codeIn(await first.say('Go'));
  await first.kill();
  const second = await start();
  t.equal(await second.say(`approve ${code}`), 'Done.');
  await second.kill();
  t.equal(ran().length, 1);
  models.enqueue({ text: 'Hello.' });
  t.equal(await (await start()).say('Hello'), 'Hello.');
  t.equal(ran().length, 1);
});

for (const effect of ['write', 'read'] as const) {
  t.test(`AP-5 the effect ${effect} decides about a call whose process was killed after it began`, async (t) => {
    const { start, ran, models } = await place(t);
    models.enqueue({ toolCalls: [{ name: `tool__${effect}`, arguments: { command: 'a' } }] }, { text: 'Done.' });
    const first = await start({ HANG: '1' });
    const code = codeIn(await first.say('Go'));
    const cut = first.say(`approve ${code}`).catch(() => 'cut');
    await eventually(() => ran().length === 1);
    await first.kill();
    t.equal(await cut, 'cut');
    t.equal(await (await start()).say(`approve ${code}`), 'Done.');
    t.equal(ran().length, effect === 'write' ? 1 : 2);
    t.equal(new Set(ran()).size, 1, 'a second run has the same key');
    const told = models.requests.at(-1)?.body.messages.at(-1)?.content;
    t.match(told, effect === 'write' ? /Whether it took effect is unknown/ : 'done');
  });
}
