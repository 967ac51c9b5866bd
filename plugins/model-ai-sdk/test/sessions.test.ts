/**
 * Sessions of a whole server with signed thoughts: the scripted server refuses a thought if
 * anything before it has changed.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startServer } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { PROVIDERS } from './connection.js';
import { type Body, listOf, NativeServer } from './servers/native-server.js';

const GEMINI_KEY = PROVIDERS.google.options.apiKey;

/** Gives the agent a tool with this description. */
function tools(description: string): string {
  return `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  const clock = {
    name: 'clock', description: ${JSON.stringify(description)}, effect: 'read',
    inputSchema: { type: 'object', properties: {} }, run: () => 'noon',
  };
  export default definePlugin({
    name: 'tools', apiVersion: 1, summary: 'A tool', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { tools: () => [clock], names: 'plain' }),
  });`;
}

interface Options {
  readonly system?: string;
  readonly agent?: string;
  readonly tools?: string;
  readonly key?: string;
}

function yaml({
  system = 'Be brief.',
  agent = '',
  tools = './tools.mjs',
  key = PROVIDERS.anthropic.options.apiKey,
}: Options = {}): string {
  return `
transports: { http: { port: 0 }, chat-completions: {} }
sessions: { use: sqlite, path: ./sessions.db }
models:
  claude: { use: ai-sdk, provider: "@ai-sdk/anthropic", model: claude-opus-4-8, apiKey: ${key}, baseUrl: "\${CLAUDE}" }
  gemini:
    { use: ai-sdk, provider: "@ai-sdk/google", model: gemini-3-pro-preview, apiKey: ${GEMINI_KEY}, baseUrl: "\${GEMINI}" }
tools: { kit: { use: ${tools} } }
agents:
  assistant: { model: [claude, gemini], system: ${system}, tools: [kit] ${agent} }
`;
}

/** What a request has in common with the one after it: tools, prompt and messages as bytes. */
function prefixOf({ tools, system, messages }: Body): string {
  const json = JSON.stringify([tools, system, messages], (key, value) => (key === 'cache_control' ? undefined : value));
  return json.slice(0, -2);
}

async function start(t: Test, options: Options = {}) {
  const claude = await NativeServer.start(PROVIDERS.anthropic.format);
  const gemini = await NativeServer.start(PROVIDERS.google.format);
  t.teardown(() => Promise.all([claude.close(), gemini.close()]));
  let turns = 0;
  for (const server of [claude, gemini]) {
    server.respond(({ body }) => {
      const last = JSON.stringify(listOf(body.messages ?? body.contents).at(-1));
      const isResult = /tool_result|functionResponse/.test(last);
      return isResult
        ? { thinking: [`Thought ${++turns}b.`], text: ['It is noon.'] }
        : {
            thinking: [`Thought ${++turns}a.`],
            text: ['Let me see.'],
            calls: [{ id: `call_${turns}`, name: 'clock', input: {} }],
          };
    });
  }
  const files = { 'tools.mjs': tools('Tells the time.'), 'other.mjs': tools('Tells the time of day.') };
  const database = join(t.testdir({}), 'sessions.db');
  const text = (next: Options) => yaml(next).replace('./sessions.db', database);
  const launch = () => startServer(text(options), { files, env: { CLAUDE: claude.url, GEMINI: gemini.url } });
  let app = await launch();
  t.teardown(() => app.stop());
  const say = async (content: string, messages: readonly object[] = []) => {
    const response = await fetch(`${app.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'assistant', session_id: 's', messages: [...messages, { role: 'user', content }] }),
    });
    t.equal(response.status, 200, await response.text());
  };
  const change = async (next: Options) => {
    await writeFile(join(app.folder, 'plugboard.yaml'), text(next));
    t.equal((await app.server.reload()).refused, undefined);
  };
  const restart = async () => {
    await app.stop();
    app = await launch();
  };
  return { claude, gemini, say, change, restart };
}

/** The thoughts in a request. */
function thoughtsIn(body: Body | undefined): readonly string[] {
  return JSON.stringify(body?.messages).match(/Thought \d+[ab]\./g) ?? [];
}

t.test('thoughts go back as long as nothing before them has changed (AI-8)', async (t) => {
  const { claude, say } = await start(t);
  for (const text of ['One?', 'Two?', 'Three?']) await say(text);
  t.same(thoughtsIn(claude.requests.at(-1)?.body), ['Thought 1a.', 'Thought 2b.', 'Thought 3a.', 'Thought 4b.', 'Thought 5a.']);
  t.same(claude.refusals, []);
});

t.test('requests begin with the bytes of those before over turns, reloads and restarts (AI-10)', async (t) => {
  const { claude, say, change, restart } = await start(t);
  await say('One?');
  await restart();
  await say('Two?');
  await change({});
  await say('Three?');
  await restart();
  await say('Four?');
  const prefixes = claude.requests.map(({ body }) => prefixOf(body));
  t.equal(prefixes.length, 8);
  for (const [index, prefix] of prefixes.entries()) t.ok(prefix.startsWith(prefixes[index - 1] ?? ''), `request ${index}`);
  t.equal(thoughtsIn(claude.requests.at(-1)?.body).length, 7);
  t.same(claude.refusals, []);
});

const CHANGES: Readonly<Record<string, Options>> = {
  'another prompt': { system: 'Be kind.' },
  'another description of a tool': { tools: './other.mjs' },
  'another key': { key: 'sk-ant-api03-another-key-of-the-same-operator' },
};

for (const [title, options] of Object.entries(CHANGES)) {
  t.test(`a session goes on after a reload with ${title} (AI-8)`, async (t) => {
    const { claude, say, change } = await start(t);
    await say('One?');
    await change(options);
    await say('Two?');
    t.same(thoughtsIn(claude.requests.at(-1)?.body), ['Thought 3a.'], 'without the thoughts from before');
    await say('Three?');
    t.same(thoughtsIn(claude.requests.at(-1)?.body), ['Thought 3a.', 'Thought 4b.', 'Thought 5a.']);
    t.same(claude.refusals, []);
  });
}

t.test('a session goes on with another system message, and without it again (AI-8)', async (t) => {
  const { claude, say } = await start(t);
  await say('One?');
  await say('Two?', [{ role: 'system', content: 'Speak like a pirate.' }]);
  t.same(thoughtsIn(claude.requests.at(-1)?.body), ['Thought 3a.']);
  await say('Three?');
  t.same(
    thoughtsIn(claude.requests.at(-1)?.body),
    ['Thought 1a.', 'Thought 2b.', 'Thought 5a.'],
    'the first ones are valid again',
  );
  t.same(claude.refusals, []);
});

for (const history of ['{ maxMessages: 5 }', '{ policy: summarize, maxMessages: 5 }']) {
  t.test(`a session goes on with the history ${history} (AI-8)`, async (t) => {
    const { claude, say } = await start(t, { agent: `, history: ${history}` });
    for (const text of ['One?', 'Two?', 'Three?', 'Four?', 'Five?']) await say(text);
    t.same(claude.refusals, []);
  });
}

t.test('a session goes on after a step of another connection (AI-8)', async (t) => {
  const { claude, gemini, say } = await start(t);
  await say('One?');
  claude.enqueue({ status: 404, body: { type: 'error', error: { type: 'not_found_error', message: 'gone' } } });
  await say('Two?');
  t.equal(gemini.requests.length, 1);
  for (const text of ['Three?', 'Four?']) await say(text);
  t.same([...claude.refusals, ...gemini.refusals], []);
  t.same(thoughtsIn(claude.requests.at(-1)?.body).slice(0, 2), ['Thought 1a.', 'Thought 2b.']);
});

t.test('a refused request is repeated once without what the provider attached (R-086)', async (t) => {
  const { claude, gemini, say } = await start(t);
  await say('One?');
  claude.enqueue({
    status: 400,
    body: { type: 'error', error: { type: 'invalid_request_error', message: 'Invalid signature' } },
  });
  await say('Two?');
  t.equal(gemini.requests.length, 0);
  t.match(thoughtsIn(claude.requests[2]?.body), ['Thought 1a.', 'Thought 2b.']);
  t.same(thoughtsIn(claude.requests[3]?.body), []);
  await say('Three?');
  t.same(claude.refusals, []);
  t.same(
    claude.requests.slice(4).map(({ body }) => thoughtsIn(body)),
    [['Thought 3a.'], ['Thought 3a.', 'Thought 4b.'], ['Thought 3a.', 'Thought 4b.', 'Thought 5a.']],
    'what was refused is not sent again',
  );
});
