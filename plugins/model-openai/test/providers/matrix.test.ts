import { SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { readEventStream } from '../../../../test/support/server-sent-events.js';
import { answerOf, MODEL_KEY, type Reply, saying, TestServer } from '../../../../test/support/test-server.js';
import { ProviderServer } from './provider-server.js';
import { PROVIDERS } from './providers.js';

/** Two tools with schemas as plugins write them: references, annotations, limits, null. */
const TOOLS = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  const lookup = {
    name: 'lookup', description: 'Looks a word up.', effect: 'read',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object',
      properties: {
        word: { $ref: '#/$defs/word' },
        depth: { type: 'integer', exclusiveMinimum: 0, default: 1 },
        language: { anyOf: [{ type: 'string', format: 'language' }, { type: 'null' }] },
      },
      $defs: { word: { type: 'string', minLength: 1, examples: ['oak'] } },
      required: ['word'], additionalProperties: false,
    },
    run: ({ word }) => \`a \${word} is a tree\`,
  };
  const sum = {
    name: 'sum', description: 'Adds numbers.', effect: 'read',
    inputSchema: { type: 'object', properties: { terms: { type: 'array', items: { type: 'number' } } }, required: ['terms'] },
    run: ({ terms }) => String(terms.reduce((a, b) => a + b, 0)),
  };
  export default definePlugin({
    name: 'tools', apiVersion: 1, summary: 'Two tools', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { tools: () => [lookup, sum], names: 'plain' }),
  });
`;

const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };

const servers = new Map<string, ProviderServer>();
for (const [name, provider] of Object.entries(PROVIDERS)) servers.set(name, await ProviderServer.start(provider));
t.teardown(() => Promise.all([...servers.values()].map(({ models }) => models.close())));

const entries = Object.entries(PROVIDERS).map(([name, { options }], i) => ({ name, options, key: `p${i}` }));
const keyOf = (wanted: string) => entries.find(({ name }) => name === wanted)?.key;
const app = await TestServer.start(
  t,
  `
transports:
  http: { port: 0 }
  chat-completions: {}
  conversations: {}
  sse: {}
models:
${entries.map(({ key, options }) => `  ${key}: { use: openai, baseUrl: "\${URL_${key}}", apiKey: "\${MODEL_KEY}", ${options} }`).join('\n')}
tools:
  kit: { use: ./tools.mjs }
agents:
  both: { model: [${keyOf('gemini')}, ${keyOf('deepseek')}], tools: [kit] }
${entries.map(({ key, name }) => `  ${name}: { model: ${key}, system: Be brief., tools: [kit] }`).join('\n')}
`,
  {
    files: { 'tools.mjs': TOOLS },
    env: Object.fromEntries(entries.map(({ key, name }) => [`URL_${key}`, servers.get(name)?.models.url ?? ''])),
    ids: new SequentialIds(),
  },
);

interface Outcome {
  readonly text: string;
  readonly usage: unknown;
  readonly raw: string;
}

/** One turn of a session, streamed or not. @throws where it failed. */
async function turn(agent: string, session: string, content: unknown, stream: boolean): Promise<Outcome> {
  const body = {
    ...saying('', { session_id: session }),
    model: agent,
    messages: [{ role: 'user', content }],
    max_tokens: 500,
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
  };
  const reply: Reply = await app.chat(body);
  if (reply.status !== 200) throw new Error(reply.text);
  if (!stream) {
    return { text: answerOf(reply), usage: (reply.body as { usage: unknown }).usage, raw: reply.text };
  }
  const { text, chunks, errors } = readEventStream(reply.text);
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  return { text, usage: chunks.at(-1)?.usage, raw: JSON.stringify(chunks) };
}

function usageOf([prompt, completion, cached, reasoning]: readonly number[], calls: number) {
  return {
    prompt_tokens: (prompt ?? 0) * calls,
    completion_tokens: (completion ?? 0) * calls,
    total_tokens: ((prompt ?? 0) + (completion ?? 0)) * calls,
    prompt_tokens_details: { cached_tokens: (cached ?? 0) * calls },
    completion_tokens_details: { reasoning_tokens: (reasoning ?? 0) * calls },
  };
}

// Each test waits for a retry. Those of one provider share its server.
t.jobs = 6;
for (const [name, provider] of Object.entries(PROVIDERS)) {
  t.test(name, { buffered: true }, async (t) => {
    for (const stream of [false, true]) {
      await t.test(`${stream ? 'streamed' : 'plain'}: four turns, two tools, an image and an error`, async (t) => {
        const session = `${name} ${stream}`;
        const server = servers.get(name);
        if (!server) throw new Error('no server');
        const say = (content: unknown) => turn(name, session, content, stream);
        const first = await say('Hello');
        t.match(first.text, /^Answer \d\.$/);
        t.match(first.usage, usageOf(provider.usage, 1), 'usage');

        const tools = await say('Use the tools');
        t.equal(tools.text, 'Found: a oak is a tree and 3.', 'both tools ran once, with their arguments');
        t.match(tools.usage, usageOf(provider.usage, 2), 'usage of both model calls');

        if (provider.seesImages === false) {
          const refused = await app.chat({ model: name, messages: [{ role: 'user', content: [IMAGE] }] });
          t.equal(refused.status, 400, 'an image is refused before the model is asked');
          t.match((await say('And this?')).text, /^Answer/);
        } else t.equal((await say([{ type: 'text', text: 'What is in this image?' }, IMAGE])).text, 'A red dot.');

        const asked = server.models.requests.length;
        server.failNext();
        t.match((await say('Now there is trouble')).text, /^Answer/, 'an error that passes is retried');
        t.equal(server.models.requests.length, asked + 2);
        const again = await say('Use the tools again');
        t.equal(again.text, 'Found: a oak is a tree and 3.', 'and the session continues with its history');

        t.same(server.takeMissing(), [], 'what it attached came back');
        await t.rejects(say('Now there is disaster'), { message: provider.lasting.message }, 'an error that stays is shown');
        t.match((await say('Still there?')).text, /^Answer/, 'and harms nothing');
        t.same(server.refusals, [], 'the provider accepted every request');
        server.takeMissing(); // the refused request was repeated without it

        const conversations = await app.get('/v1/conversations?limit=100');
        const all = (conversations.body as { data: { id: string; key: string }[] }).data;
        const id = all.find(({ key }) => key === session)?.id;
        const items = await app.get(`/v1/conversations/${id}/items?limit=100&order=asc`);
        for (const shown of [first.raw, tools.raw, again.raw, items.text]) {
          t.notMatch(
            shown,
            /hidden signature|reasoning_content|reasoning_details|extra_content|functions\.lookup/,
            'callers see no extras',
          );
          t.notMatch(shown, MODEL_KEY);
        }
        t.equal(
          (items.text.match(/"function_call"|"mcp_call"|"type":"tool/g) ?? []).length >= 2,
          true,
          'the tool calls are shown',
        );
      });
    }
  });
}

t.test('a session continues with another provider when the first one fails, and back', async (t) => {
  const [gemini, deepseek] = [servers.get('gemini'), servers.get('deepseek')];
  if (!gemini || !deepseek) throw new Error('no server');
  const say = (content: string) => turn('both', 'both', content, true);
  const found = 'Found: a oak is a tree and 3.';
  t.equal((await say('Use the tools')).text, found);
  const asked = deepseek.models.requests.length;
  gemini.models.enqueue({ status: 403 }, { status: 403 });
  t.equal((await say('Use the tools again')).text, found, 'the second provider runs the turn');
  t.equal(deepseek.models.requests.length, asked + 2);
  t.notMatch(JSON.stringify(deepseek.models.requests.at(-1)?.body), 'hidden signature');
  t.equal((await say('Use the tools once more')).text, found, 'and the first one the next');
  t.equal(deepseek.models.requests.length, asked + 2);
  const sent = JSON.stringify(gemini.models.requests.at(-1)?.body);
  t.match(sent, 'hidden signature');
  t.match(sent, 'skip_thought_signature_validator', 'for the calls of the other provider');
  t.notMatch(sent, 'reasoning_content');
  t.same([...gemini.refusals, ...deepseek.refusals], []);
});
