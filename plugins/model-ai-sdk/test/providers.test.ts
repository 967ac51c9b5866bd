import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Message, ModelRequest } from '@plugboard/kernel';
import { eventually, modelConnectorContract, modelRequest, pluginContract } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { asMessages, CLOCK, callsOf, open, PROVIDERS, type ProviderName, readAll, readError, textOf } from './connection.js';
import type { StatusAnswer } from './servers/native-server.js';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==';

t.test('fulfils the plugin contract', async (t) => {
  const config = PROVIDERS.anthropic.options;
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url), config, entry: 'models.claude' });
});

function user(content: Extract<Message, { role: 'user' }>['content']): Message {
  return { role: 'user', content };
}

/** The status of a server that has too much to do, in each provider's words. */
const OVERLOADED: Record<ProviderName, StatusAnswer> = {
  anthropic: { status: 529, body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } },
  google: {
    status: 429,
    body: {
      error: {
        code: 429,
        message: 'Quota exceeded.',
        status: 'RESOURCE_EXHAUSTED',
        details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '3s' }],
      },
    },
  },
  bedrock: { status: 429, body: { message: 'Too many requests.' }, headers: { 'retry-after': '3' } },
  openai: {
    status: 429,
    body: { error: { message: 'Rate limit reached.', type: 'requests', param: null, code: 'rate_limit_exceeded' } },
    headers: { 'retry-after-ms': '3000' },
  },
  azure: {
    status: 429,
    body: { error: { code: 'RateLimitReached', message: 'Requests have exceeded the rate limit.' } },
    headers: { 'retry-after': '3' },
  },
  vertex: {
    status: 429,
    body: { error: { code: 429, message: 'Resource exhausted.', status: 'RESOURCE_EXHAUSTED' } },
    headers: { 'retry-after': '3' },
  },
  mistral: {
    status: 429,
    body: { object: 'error', message: 'Requests rate limit exceeded', type: 'rate_limited', param: null, code: '1300' },
    headers: { 'retry-after': '3' },
  },
  xai: {
    status: 429,
    body: { code: 'Some resource has been exhausted', error: 'Too many requests for team.' },
    headers: { 'retry-after': '3' },
  },
};

/** Providers that do not count the tokens of thoughts. */
const WITHOUT_REASONING_COUNT: readonly ProviderName[] = ['bedrock'];
/** Those that count the tokens that they wrote to their cache. */
const WITH_CACHE_WRITES: readonly ProviderName[] = ['anthropic', 'bedrock'];

/** What each provider attaches to thoughts and calls, as it comes back to it. */
const ATTACHED: Record<ProviderName, RegExp> = {
  anthropic: /"signature"/,
  google: /thoughtSignature/,
  bedrock: /"signature"/,
  openai: /encrypted_content/,
  azure: /encrypted_content/,
  vertex: /thoughtSignature/,
  mistral: /"thinking":\[\{"type":"text","text":"First UTC/,
  xai: /encrypted_content/,
};

/** How an unknown model is refused, if it is not by 404. */
const UNKNOWN_MODEL: Partial<Record<ProviderName, RegExp>> = {
  bedrock: /model identifier is invalid/,
  mistral: /Invalid model: claude-0/,
};

// One package for each form of streams: the others share it.
for (const name of ['anthropic', 'google', 'bedrock', 'openai', 'mistral'] as const) {
  t.test(`${name} fulfils the model connector contract`, async (t) => {
    const { server, connector } = await open(t, name);
    server.respond(({ body }) => {
      const hasTools = body.tools !== undefined || body.toolConfig !== undefined;
      if (hasTools)
        return { calls: ['UTC', 'CET'].map((zone, index) => ({ id: `call_${index}`, name: 'clock', input: { zone } })) };
      return { text: ['One', pause, ' "two"\n', pause, 'trois é'] };
    });
    const samples = { text: modelRequest('Count'), toolCall: modelRequest('Time?', { tools: [CLOCK] }) };
    modelConnectorContract(t.test, { open: () => connector, ...samples });
  });
}

/** What is tested with each provider, and listed in the README. */
const COLUMNS = [
  'plain',
  'stream',
  'tools',
  'parallel',
  'images',
  'thinking',
  'cache',
  'usage',
  'errors',
  'broken stream',
  'cancel',
] as const;
type Column = (typeof COLUMNS)[number];
const shown = new Set<string>();
const failed = new Set<string>();

/** A test that shows some of them. */
function show(t: Test, name: ProviderName, columns: readonly Column[], title: string, body: (t: Test) => Promise<void>): void {
  t.test(title, async (t) => {
    let isShown = false;
    try {
      await body(t);
      isShown = t.passing();
    } finally {
      for (const column of columns) (isShown ? shown : failed).add(`${name} ${column}`);
    }
  });
}

for (const name of Object.keys(PROVIDERS) as ProviderName[]) {
  t.test(name, async (t) => {
    show(t, name, ['plain', 'stream', 'thinking', 'cache', 'usage'], 'text, reasoning and token counts (AI-5)', async (t) => {
      const { server, ...connection } = await open(t, name);
      server.enqueue({ thinking: ['Hm.'], text: ['Hello ', 'you'], usage: [100, 40, 20, 5, 10] });
      const events = await readAll(connection);
      t.equal(textOf(events), 'Hello you');
      t.equal(events.filter(({ type }) => type === 'text').length, 2, 'streamed');
      t.equal(textOf(events, 'reasoning'), 'Hm.');
      const usage = {
        promptTokens: 100,
        cachedTokens: 40,
        cacheWriteTokens: WITH_CACHE_WRITES.includes(name) ? 10 : 0,
        completionTokens: 20,
        reasoningTokens: WITHOUT_REASONING_COUNT.includes(name) ? 0 : 5,
      };
      t.match(events.slice(-2), [
        { type: 'usage', usage },
        { type: 'end', reason: 'stop' },
      ]);
      server.enqueue({ text: ['Hello ', 'you'] });
      t.equal(textOf(await readAll(connection, { incremental: false })), 'Hello you', 'plain');
    });

    show(
      t,
      name,
      ['tools', 'parallel'],
      'parallel tool calls go back with what the provider attached (AI-6, AI-7)',
      async (t) => {
        const { server, ...connection } = await open(t, name);
        const calls = ['UTC', 'CET'].map((zone, index) => ({ id: `call_${index}`, name: 'clock', input: { zone } }));
        server.enqueue({ thinking: ['First UTC.', 'Then CET.'], text: ['Let me see.'], calls }, { text: ['Noon.'] });
        const messages: Message[] = [{ role: 'system', content: 'Be brief.' }, user('Time?')];
        const first = await readAll(connection, { messages, tools: [CLOCK] });
        t.same(
          callsOf(first).map(({ name, arguments: args }) => `${name} ${args}`),
          ['clock {"zone":"UTC"}', 'clock {"zone":"CET"}'],
        );
        const second = await readAll(connection, { messages: [...messages, ...asMessages(first, ['12', '13'])], tools: [CLOCK] });
        t.equal(textOf(second), 'Noon.');
        t.same(server.refusals, []);
        t.match(JSON.stringify(server.requests[1]?.body), ATTACHED[name]);
      },
    );

    show(t, name, ['images'], 'images as data and by their URL (AI-13)', async (t) => {
      const { server, ...connection } = await open(t, name, { allowPrivate: true });
      const images = await serveImage(t);
      // The type is that of the data: providers refuse another one.
      const url = `data:image/jpeg;base64,${PNG}`;
      await readAll(connection, { messages: [user([{ type: 'image_url', image_url: { url } }])] });
      t.match(JSON.stringify(server.requests[0]?.body), new RegExp(`${PNG.slice(0, 40)}`));
      t.match(JSON.stringify(server.requests[0]?.body), /image\/png|"format":"png"/);
      // A URL is passed on, if the provider fetches it, or else the image itself.
      for (const path of ['/a.png', '/a']) {
        const url = images + path;
        await readAll(connection, { messages: [user([{ type: 'image_url', image_url: { url } }])] });
        const sent = JSON.stringify(server.requests.at(-1)?.body);
        t.ok(sent.includes(`"${url}"`) || sent.includes(PNG.slice(0, 40)), path);
      }
      t.same(server.refusals, []);
    });

    show(t, name, ['errors'], 'a provider that has too much to do is retried after its wait', async (t) => {
      const { server, ...connection } = await open(t, name);
      server.enqueue(OVERLOADED[name]);
      const { retryable, retryAfter, message } = await readError(connection);
      t.ok(retryable, message);
      t.equal(retryAfter, name === 'anthropic' ? undefined : 3);
    });

    show(t, name, ['errors'], 'a wrong key and an unknown model are named, and the key is not', async (t) => {
      const wrong = await open(t, name, { apiKey: 'wrong-key-0123456789' });
      const refused = await readError(wrong);
      t.match(refused, { retryable: false, message: /did not accept the credentials \(\d+\); check apiKey/ });
      t.notMatch(refused.message, /wrong-key/);
      const unknown = await open(t, name, { model: 'claude-0' });
      t.match(await readError(unknown), {
        retryable: false,
        message: UNKNOWN_MODEL[name] ?? /"claude-0"/,
      });
    });

    show(t, name, ['broken stream'], 'a stream that breaks off is a failure (AI-3)', async (t) => {
      const { server, ...connection } = await open(t, name);
      server.enqueue(
        { text: ['Hel', pause], finish: null },
        { calls: [{ name: 'clock', input: { zone: 'UTC' } }], finish: null },
      );
      t.match(await readError(connection), { text: 'Hel', message: /cut off|finish reason "other"/ });
      t.match(await readError(connection, { tools: [CLOCK] }), { text: '', retryable: true });
      await readAll(connection);
      const frames = server.frames({ text: ['Hel', pause, 'lo'] });
      server.enqueue({ frames: frames.slice(0, -2), cut: true });
      t.match(await readError(connection), { message: /cut off/ });
    });

    show(t, name, ['cancel'], 'cancelling closes the socket and leaves no rejection (AI-16)', async (t) => {
      const { server, connector } = await open(t, name);
      const rejections: unknown[] = [];
      const onRejection = (reason: unknown) => rejections.push(reason);
      process.on('unhandledRejection', onRejection);
      t.teardown(() => process.off('unhandledRejection', onRejection));
      for (const end of ['abort', 'return'] as const) {
        const gate = Promise.withResolvers<void>();
        server.enqueue({ text: ['Hel', () => gate.promise, 'lo'] });
        const abort = new AbortController();
        const iterator = connector.stream(modelRequest('Hi'), abort.signal)[Symbol.asyncIterator]();
        await iterator.next();
        t.equal(server.openSockets, 1);
        if (end === 'return') await iterator.return?.();
        else {
          const next = iterator.next();
          abort.abort(new Error('gone'));
          await t.rejects(next, { message: 'gone' });
        }
        await eventually(() => server.openSockets === 0);
        gate.resolve();
      }
      await pause();
      t.same(rejections, []);
    });

    show(t, name, ['broken stream'], 'nothing for idleTimeout is a failure (R-033)', async (t) => {
      const { server, clock, ...connection } = await open(t, name);
      const gate = Promise.withResolvers<void>();
      t.teardown(() => gate.resolve());
      server.enqueue({ text: ['Hel', () => gate.promise, 'lo'] });
      const failed = readError(connection);
      await eventually(() => clock.pending > 0 && server.requests.length === 1);
      await pause();
      clock.advance(120_001);
      t.match(await failed, { message: /sent nothing for 120s/ });
    });
  });
}

t.test('the README says what these tests have shown of every package', async (t) => {
  const names = Object.keys(PROVIDERS) as ProviderName[];
  const missing = names
    .flatMap((name) => COLUMNS.map((column) => `${name} ${column}`))
    .filter((key) => !shown.has(key) || failed.has(key));
  t.strictSame(missing, []);
  const packages = names.map((name) => `\`${PROVIDERS[name].options.provider}\``);
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  t.ok(readme.replaceAll(/\s+/g, ' ').includes(`Tested with ${packages.join(', ')}: ${COLUMNS.join(', ')}.`));
});

t.test('reasoningEffort holds where neither the agent nor the caller sets one', async (t) => {
  const older = { model: 'claude-sonnet-4-5', providerOptions: {}, reasoningEffort: 'low' };
  const bodies = async (options: Readonly<Record<string, unknown>>, params: object) => {
    const native = await open(t, 'anthropic', options);
    await readAll(native, { params: { ...params } });
    return native.server.requests.at(-1)?.body;
  };
  t.match(await bodies(older, {}), { thinking: { type: 'enabled', budget_tokens: 6400 } });
  t.match(await bodies(older, { reasoning_effort: 'high' }), { thinking: { type: 'enabled', budget_tokens: 38400 } });
  t.match(await bodies(older, { reasoning_effort: 'none' }), { thinking: { type: 'disabled' } });
  t.match(await bodies({ providerOptions: {}, reasoningEffort: 'low' }, {}), {
    thinking: { type: 'adaptive' },
    output_config: { effort: 'low' },
  });
});

t.test('settings of the protocol reach the provider by its names', async (t) => {
  const params: ModelRequest['params'] = {
    max_completion_tokens: 100,
    stop: 'x',
    tool_choice: { type: 'function', function: { name: 'clock' } },
    parallel_tool_calls: false,
    reasoning_effort: 'low',
  };
  const claude = await open(t, 'anthropic');
  await readAll(claude, { params, tools: [CLOCK] });
  t.match(claude.server.requests[0]?.body, {
    max_tokens: 100,
    stop_sequences: ['x'],
    tool_choice: { disable_parallel_tool_use: true },
  });
  const gpt = await open(t, 'openai');
  await readAll(gpt, { params: { ...params, prompt_cache_key: 'k', verbosity: 'low' }, tools: [CLOCK] });
  t.match(gpt.server.requests[0]?.body, {
    max_output_tokens: 100,
    tool_choice: { type: 'function', name: 'clock' },
    parallel_tool_calls: false,
    prompt_cache_key: 'k',
    text: { verbosity: 'low' },
    reasoning: { effort: 'low' },
    store: false,
  });
  const grok = await open(t, 'xai');
  await readAll(grok, { params: { ...params, prompt_cache_key: 'k' }, tools: [CLOCK] });
  t.match(grok.server.requests[0]?.body, {
    max_output_tokens: 100,
    parallel_tool_calls: false,
    prompt_cache_key: 'k',
    store: false,
  });
  const mistral = await open(t, 'mistral');
  await readAll(mistral, { params: { ...params, prompt_cache_key: 'k' }, tools: [CLOCK] });
  t.match(mistral.server.requests[0]?.body, { max_tokens: 100, parallel_tool_calls: false, prompt_cache_key: 'k' });
});

/** Serves the image under every path. */
async function serveImage(t: Test): Promise<string> {
  const http = createServer((_, response) => response.end(Buffer.from(PNG, 'base64'))).listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.teardown(() => http.close());
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
