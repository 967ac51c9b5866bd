/**
 * Random sessions that meet every provider: whatever a turn leaves behind, the next one is
 * accepted, on any connection. The scripted servers refuse what the real ones refuse.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startServer } from '@plugboard/testing';
import t from 'tap';
import { PROVIDERS as NATIVE } from '../../plugins/model-ai-sdk/test/connection.js';
import { listOf, NativeServer, type Scripted } from '../../plugins/model-ai-sdk/test/servers/native-server.js';
import { ProviderServer } from '../../plugins/model-openai/test/providers/provider-server.js';
import { PROVIDERS as PRESETS } from '../../plugins/model-openai/test/providers/providers.js';
import { rounds } from '../support/rounds.js';
import { seeded } from '../support/seeded.js';

const TOOLS = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  const inputSchema = { type: 'object', properties: { word: { type: 'string' }, depth: {}, terms: { type: 'array', items: {} } } };
  const image = { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' };
  const tool = (name, run) => ({ name, description: 'A tool.', effect: 'read', inputSchema, run });
  export default definePlugin({
    name: 'tools', apiVersion: 1, summary: 'Tools', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { tools: () => [
      tool('lookup', () => ''), tool('sum', () => { throw new Error('it failed \\ud83d'); }),
    ], names: 'plain' }),
  });`;

/** A provider in this test: how it is configured, and why it refused requests. */
interface Provider {
  readonly name: string;
  readonly entry: string;
  readonly refusals: readonly string[];
  /** Answers the next request with an error status. */
  fail(status: number): void;
}

t.setTimeout(600_000);

const providers: Provider[] = [];
const env: Record<string, string> = {};

for (const [name, provider] of Object.entries(PRESETS)) {
  const server = await ProviderServer.start(provider);
  t.teardown(() => server.models.close());
  const key = `P${providers.length}`;
  env[key] = server.models.url;
  providers.push({
    name,
    entry: `{ use: openai, baseUrl: "\${${key}}", apiKey: sk-key-of-the-test, ${provider.options} }`,
    refusals: server.refusals,
    fail: (status) => server.models.enqueue({ status }),
  });
}

/** Calls tools when it is asked to, with arguments of all kinds. */
function nativeAnswer(random: () => number, last: string): Scripted {
  if (/tool_result|functionResponse|toolResult|function_call_output/.test(last)) return { thinking: ['Hm.'], text: ['Found.'] };
  if (!last.includes('tools')) return random() < 0.2 ? { thinking: ['Hm.'] } : { thinking: ['Hm.'], text: ['Answer ', 'one.'] };
  const inputs = [{}, { word: 'oak' }, { word: 7, terms: [null, 'x'] }, { other: { deep: ['\u0000'] } }];
  const input = (): object => inputs[Math.floor(random() * inputs.length)] ?? {};
  const calls = ['lookup', 'sum', 'none']
    .slice(0, 1 + Math.floor(random() * 3))
    .map((name, index) => ({ id: `call_${index}`, name, input: input() }));
  return { thinking: ['One.', 'Two.'], ...(random() < 0.5 ? { text: ['Let me see.'] } : {}), calls };
}

for (const [name, { format, options }] of Object.entries(NATIVE)) {
  const server = await NativeServer.start(format);
  t.teardown(() => server.close());
  const random = seeded(providers.length);
  server.respond(({ body }) => nativeAnswer(random, JSON.stringify(listOf(body.messages ?? body.contents ?? body.input).at(-1))));
  const key = `P${providers.length}`;
  env[key] = server.url;
  const entry = JSON.stringify({ use: 'ai-sdk', ...options, baseUrl: `\${${key}}` });
  const fail = (status: number) =>
    server.enqueue({ status, body: { error: { message: 'no', type: 'x', code: status, status: 'X' } } });
  providers.push({ name: `native-${name}`, entry, refusals: server.refusals, fail });
}

/** The configuration, in which one provider answers, and others stand behind it. */
function yaml(order: readonly number[], prompt: string, history: string): string {
  return `
transports: { http: { port: 0 }, chat-completions: {}, sse: {} }
sessions: { use: sqlite, path: ./sessions.db }
models:
${providers.map(({ entry }, index) => `  m${index}: ${entry}`).join('\n')}
tools: { kit: { use: ./tools.mjs } }
agents:
  mixed: { model: [${order.map((index) => `m${index}`).join(', ')}], system: ${prompt}, tools: [kit], history: ${history} }
`;
}

const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
const CONTENTS: readonly unknown[] = [
  'Hello',
  'Use the tools',
  'Use the tools again',
  ' ',
  'half \ud83d',
  [{ type: 'text', text: 'See' }, IMAGE],
  'Now there is trouble',
  'Now there is disaster',
];
const CLIENT_TOOL = { type: 'function', function: { name: 'ask_user', parameters: { type: 'object', properties: {} } } };
const HISTORIES = ['truncate', '{ maxMessages: 6 }', '{ policy: summarize, maxMessages: 8 }'];

t.test('the next turn of a random session is accepted by every provider (R-086)', async (t) => {
  const first = yaml([0], 'Be brief.', 'truncate');
  const app = await startServer(first, { files: { 'tools.mjs': TOOLS }, env });
  t.teardown(() => app.stop());
  let turns = 0;
  for (let seed = 1; seed <= rounds({ short: 6, long: 60, soak: 600 }); seed++) {
    const random = seeded(seed);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const indexes = providers.map((_, index) => index);
    const say = async (content: unknown, fields: object = {}, signal?: AbortSignal): Promise<string | undefined> => {
      turns++;
      const extra = random() < 0.2 ? [{ role: 'system', content: 'Speak like a pirate.' }] : [];
      const response = await fetch(`${app.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'mixed',
          session_id: `s${seed}`,
          messages: [...extra, { role: 'user', content }],
          ...fields,
        }),
        ...(signal ? { signal } : {}),
      });
      const text = await response.text();
      return response.status === 200 && !text.includes('"error"') ? undefined : `${response.status} ${text}`;
    };
    const answerWith = async (order: readonly number[]) => {
      await writeFile(join(app.folder, 'plugboard.yaml'), yaml(order, pick(['Be brief.', 'Be kind.']), pick(HISTORIES)));
      t.equal((await app.server.reload()).refused, undefined);
    };
    for (let turn = 0; turn < 6; turn++) {
      await answerWith([pick(indexes), pick(indexes)].filter((one, at, all) => all.indexOf(one) === at));
      const provider = pick(providers);
      if (random() < 0.3) provider.fail(404);
      const isLeft = random() < 0.2;
      const signal = isLeft ? AbortSignal.timeout(1 + Math.floor(random() * 10)) : undefined;
      const fields = { ...(random() < 0.5 ? { stream: true } : {}), ...(random() < 0.2 ? { tools: [CLIENT_TOOL] } : {}) };
      await say(pick(CONTENTS), fields, signal).catch(() => undefined);
    }
    const refusedBefore = providers.map(({ refusals }) => refusals.length);
    for (const index of indexes) {
      if (index % 4 !== seed % 4) continue;
      const { name } = providers[index] as Provider;
      await answerWith([index]);
      let failure = await say('Still there?');
      // Errors that were scripted for earlier turns, which asked another provider.
      while (failure?.includes('answered 404')) failure = await say('Still there?');
      t.equal(failure, undefined, `session ${seed} on ${name}`);
    }
    for (const [index, { name, refusals }] of providers.entries())
      t.same(refusals.slice(refusedBefore[index]), [], `${name} refused nothing of session ${seed}`);
  }
  t.comment(`${turns} turns, ${providers.reduce((sum, { refusals }) => sum + refusals.length, 0)} refused requests`);
});
