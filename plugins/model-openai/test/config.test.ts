import { checkOptions } from '@plugboard/testing';
import t from 'tap';
import { parseBaseUrl } from '../src/http/endpoint.js';
import plugin from '../src/index.js';
import type { DialectOptions } from '../src/provider/dialect.js';
import { describeDialect, resolveDialect } from '../src/provider/resolve-dialect.js';

function faults(options: object): readonly string[] {
  return checkOptions(plugin, { model: 'm', ...options }).faults;
}

t.test('the defaults match the documentation', async (t) => {
  t.strictSame(checkOptions(plugin, { model: 'm' }).config, {
    model: 'm',
    baseUrl: 'https://api.openai.com/v1',
    headers: {},
    body: {},
    omit: [],
    idleTimeout: '120s',
    connectTimeout: '10s',
    contextWindow: 128_000,
    input: ['text', 'image'],
  });
});

t.test('a base URL without a scheme is http', async (t) => {
  const at = (baseUrl: string) => {
    const endpoint = parseBaseUrl(baseUrl);
    return typeof endpoint === 'string' ? endpoint : endpoint.origin + endpoint.path;
  };
  t.equal(at('127.0.0.1:11434/v1'), 'http://127.0.0.1:11434/v1/chat/completions');
  t.equal(at('localhost:11434'), 'http://localhost:11434/chat/completions');
  t.equal(at('[::1]:80/v1'), 'http://[::1]/v1/chat/completions');
  t.equal(at('https://api.openai.com/v1/'), 'https://api.openai.com/v1/chat/completions');
  t.equal(at('HTTP://ollama:11434//v1'), 'http://ollama:11434/v1/chat/completions');
  t.equal(at('https://x.com/d/y?api-version=1'), 'https://x.com/d/y/chat/completions?api-version=1');
});

t.test('an invalid base URL is refused', async (t) => {
  t.same(faults({ baseUrl: 'http://' }), [
    'baseUrl: is not a valid URL; examples: https://api.openai.com/v1, 127.0.0.1:11434/v1',
  ]);
  t.same(faults({ baseUrl: 'ftp://x/v1' }), ['baseUrl: has the scheme ftp://; use http:// or https://']);
  t.same(faults({ baseUrl: 'https://me:secret@x/v1' }), [
    'baseUrl: contains a user name or a password; use headers instead, which are kept secret',
  ]);
  t.same(faults({ baseUrl: 'https://x/v1/chat/completions' }), [
    'baseUrl: must not end in /chat/completions, which is appended to it',
  ]);
});

t.test('an invalid header value is refused without being shown', async (t) => {
  for (const options of [{ apiKey: 'sk-secret\n' }, { apiKey: 'sk secret' }, { headers: { 'x-key': 'sk-secret\r\nx: y' } }]) {
    const found = faults(options);
    t.equal(found.length, 1);
    t.notMatch(found[0], 'secret');
  }
  t.equal(faults({ headers: { 'no name': 'x' } }).length, 1);
  t.same(faults({ headers: { 'Content-Length': '1' } }), ['headers.Content-Length: is set by the connection; remove it']);
  t.same(faults({ apiKey: '', headers: { 'X-Title': 'Ünïted' } }), []);
});

t.test('input must include text', async (t) => {
  t.same(faults({ input: ['image'] }), ['input: must include text, which every conversation contains']);
  t.same(faults({ input: ['text'] }), []);
});

t.test('fields that the connection sets can be neither added nor omitted', async (t) => {
  t.same(faults({ body: { stream: false, top_k: 5 } }), ['body.stream: is set by the connection; remove it']);
  t.same(faults({ omit: ['seed', 'tools'] }), ['omit[1]: every request needs "tools"; remove it']);
  t.same(faults({ emptyContent: null, provider: 'groq' }), []);
  t.match(faults({ provider: 'grok' }), [/^provider: /]);
});

t.test('the host of the base URL selects the preset', async (t) => {
  const hosts: Readonly<Record<string, string>> = {
    'https://api.openai.com/v1': 'openai',
    'https://me.openai.azure.com/openai/v1': 'azure',
    'https://api.anthropic.com/v1': 'anthropic',
    'https://generativelanguage.googleapis.com/v1beta/openai': 'gemini',
    'https://us-central1-aiplatform.googleapis.com/v1/x': 'gemini',
    'https://api.mistral.ai/v1': 'mistral',
    'https://api.deepseek.com': 'deepseek',
    'https://api.moonshot.cn/v1': 'moonshot',
    'https://api.groq.com/openai/v1': 'groq',
    'https://api.cerebras.ai/v1': 'cerebras',
    'https://api.x.ai/v1': 'xai',
    'https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1': 'bedrock',
    'https://api.cloudflare.com/client/v4/accounts/a/ai/v1': 'workers-ai',
    'https://dashscope-intl.aliyuncs.com/compatible-mode/v1': 'dashscope',
    'https://api.minimaxi.com/v1': 'minimax',
    'https://api.z.ai/api/paas/v4': 'zhipu',
    'https://api.perplexity.ai': 'perplexity',
    'https://openrouter.ai/api/v1': 'openrouter',
    '127.0.0.1:11434/v1': 'ollama',
    'http://ollama/v1': 'ollama',
    'http://127.0.0.1:8000/v1': 'none',
    'https://api.openai.com.example/v1': 'none',
    'https://notapi.x.ai.example': 'none',
  };
  for (const [baseUrl, provider] of Object.entries(hosts)) {
    const endpoint = parseBaseUrl(baseUrl);
    if (typeof endpoint === 'string') throw new Error(endpoint);
    t.equal(resolveDialect({ body: {}, omit: [] }, endpoint.host, 'm').provider, provider, baseUrl);
  }
  t.equal(resolveDialect({ provider: 'none', body: {}, omit: [] }, 'api.openai.com', 'm').tokenParam, undefined);
});

t.test('options replace what the preset says; body and omit are added to it', async (t) => {
  const dialect = resolveDialect(
    { tokenParam: 'max_completion_tokens', roles: 'any', omit: ['top_p'], body: { safe_prompt: true } },
    'api.mistral.ai',
    'm',
  );
  t.match(dialect, { tokenParam: 'max_completion_tokens', roles: 'any', toolIds: 'alnum9', body: { safe_prompt: true } });
  t.ok(dialect.omit.has('top_p') && dialect.omit.has('seed'));
  t.same(resolveDialect({ body: { reasoning_split: false }, omit: [] }, 'api.minimax.io', 'm').body, { reasoning_split: false });
});

t.test('plugboard plugins shows the preset and what differs from the protocol', async (t) => {
  const lines = (options: DialectOptions, host: string) =>
    describeDialect(resolveDialect(options, host, 'gemini-3-pro'), options).map(({ label, text }) => `${label}: ${text}`);
  t.same(lines({ body: {}, omit: [] }, 'localhost'), ['provider: none (unknown host)']);
  t.same(lines({ body: {}, omit: [] }, 'api.openai.com'), [
    'provider: openai (known by its host)',
    'requests: tokenParam max_completion_tokens',
  ]);
  t.match(lines({ provider: 'gemini', body: { key: 'secret' }, omit: [], emptyContent: '' }, 'proxy.local'), [
    'provider: gemini (set by provider)',
    /^requests: schema gemini, emptyContent "", roles user-first, body key, placeholder signature, omit prediction /,
  ]);
});
