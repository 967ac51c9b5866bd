import { setTimeout as wait } from 'node:timers/promises';
import { chunk, list, user } from './values.mjs';

/** Work that is not linear in what came, and what a quiet server does. */
export const WORK = {
  'nothing, for 4 s': () => () => wait(2_000),
  'a schema of 2 KB that expands': (s) => async () => {
    const five = (to) => Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, to]));
    const levels = Array.from({ length: 10 }, (_, at) => [
      at,
      { type: 'object', properties: five({ $ref: `#/$defs/${at + 1}` }) },
    ]);
    const $defs = Object.fromEntries([...levels, [10, {}]]);
    const parameters = { type: 'object', properties: { a: { $ref: '#/$defs/0' } }, $defs };
    await s.chat({
      model: 'translated',
      messages: user('Hi'),
      tools: [{ type: 'function', function: { name: 'f', parameters } }],
    });
  },
  '160 KB of arguments in words': (s) => async () => {
    const words = ['{"q":"', ...Array(40_000).fill('abc '), '"}'];
    const call = (piece, id) => chunk({ tool_calls: [{ index: 0, id, function: { name: 'own__find', arguments: piece } }] });
    const end = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n';
    s.queue.push({ raw: [call('', 'a'), ...words.map((word) => call(word)), end] });
    await s.chat({ model: 'caller', messages: user('Hi') });
  },
  'a pattern that backtracks': (s) => async () => {
    s.queue.push({ toolCalls: [{ name: 'own__find', arguments: { slow: `${'a'.repeat(34)}!` } }] });
    await s.chat({ model: 'caller', messages: user('Hi') });
  },
  'twenty escaped texts of 5 MB': (s) => async () => {
    const body = `{"model":"assistant","messages":[{"role":"user","content":"${'\\u0041\\n'.repeat(625_000)}"}]}`;
    await Promise.all(Array.from({ length: 20 }, () => s.chat(body)));
  },
  'S-63: 5,000 steps after a message of 1.3 MB': (s) => async () => {
    const step = (at) => [
      { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${at}`, name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: `toolu_${at}`, content: 'ok' }] },
    ];
    const messages = [...user('word '.repeat(260_000)), ...list(5_000, step).flat()];
    await s.post('/v1/messages', { model: 'coder', max_tokens: 100, messages });
  },
  'S-64: a message with 9,000 calls': (s) => async () => {
    const call = (at) => ({ type: 'function_call', call_id: `call_${at}`, name: 'f', arguments: '{}' });
    const result = (at) => ({ type: 'function_call_output', call_id: `call_${at}`, output: 'word '.repeat(280) });
    const input = [...user('Hi'), ...list(9_000, call), ...list(9_000, result)];
    await s.post('/v1/responses/input_tokens', { model: 'coder', input });
  },
  'S-65: a decision with 8,000 spaces': async (s) => {
    s.queue.push({ toolCalls: [{ name: 'own__send', arguments: {} }] });
    await s.setUp('/v1/chat/completions', { model: 'asking', session_id: 'a', messages: user('Send') });
    const content = `deny ABCDEF because${' '.repeat(8_000)}x\u2028y`;
    return () => s.chat({ model: 'asking', session_id: 'a', messages: user(content) });
  },
};
