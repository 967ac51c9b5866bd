import { checkOptions } from '@plugboard/kernel/testing';
import t from 'tap';
import { parseBaseUrl } from '../src/http/endpoint.js';
import plugin from '../src/index.js';

function faults(options: object): readonly string[] {
  return checkOptions(plugin, { model: 'm', ...options }).faults;
}

t.test('the defaults match the documentation', async (t) => {
  t.strictSame(checkOptions(plugin, { model: 'm' }).config, {
    model: 'm',
    baseUrl: 'https://api.openai.com/v1',
    headers: {},
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
