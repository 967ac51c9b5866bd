/**
 * Answers and requests that make the server do much more work than they have bytes. Each server is
 * a process of its own, and what is measured is how long its event loop was held.
 */
import t, { type Test } from 'tap';
import { ASSISTANT, TRANSPORTS } from '../../support/test-server.js';
import { LOOP_DELAY, LOOP_DELAY_FILES, longestDelay } from '../support/loop-delay.js';
import { ServerProcess } from '../support/server-process.js';

/**
 * Milliseconds for which one request or answer may hold the event loop. Generous, because other
 * tests run at the same time; each attack below took seconds before it was bounded.
 */
const HOLD_LIMIT = 1_000;
/** Milliseconds that such a request may take at all. */
const TIME_LIMIT = 20_000;

const chunk = (delta: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;
const END = ['data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n', 'data: [DONE]\n\n'];

function start(t: Test, more = ''): Promise<ServerProcess> {
  return ServerProcess.start(t, { yaml: TRANSPORTS + ASSISTANT + LOOP_DELAY + more, files: LOOP_DELAY_FILES });
}

/**
 * Sends a request to the assistant. @returns its reply, and for how long it held the event loop.
 */
async function measure(server: ServerProcess, fields: object = {}) {
  await longestDelay(server);
  const before = server.memory();
  const began = performance.now();
  const reply = await server.request('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'Hi' }], ...fields }),
  });
  const held = Math.round(await longestDelay(server));
  const took = Math.round(performance.now() - began);
  return { ...reply, held, took, grown: Math.round(server.memory() - before) };
}

t.test('S-55 arguments of a tool call take time in proportion to their length', async (t) => {
  const server = await start(t);
  const words = 'word '.repeat(16_000);
  const pieces = [...'{"text":"', ...(words.match(/.{1,5}/g) ?? []), '"}'];
  const begin = chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '' } }] });
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
  const attacks = {
    'in words': pieces.map((piece) => ({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
    'in words, each with the name': pieces.map((piece) => ({
      tool_calls: [{ index: 0, function: { name: 'f', arguments: piece } }],
    })),
    'complete, then blanks': ['{"a":"', words, '"}', ...Array(8_000).fill(' ')].map((piece) => ({
      tool_calls: [{ index: 0, function: { arguments: piece } }],
    })),
    'many objects in one call': [
      { tool_calls: [{ index: 0, function: { arguments: Array.from({ length: 20_000 }, (_, at) => `{"${at}":1}`).join('') } }] },
    ],
    'many calls': Array.from({ length: 30_000 }, (_, at) => ({
      tool_calls: [{ index: at, id: `c${at}`, function: { name: 'f', arguments: '{}' } }],
    })),
    'fields of the message': Array.from({ length: 10_000 }, (_, at) => ({ extra_content: { [`k${at}`]: 1 } })),
  };
  for (const [what, deltas] of Object.entries(attacks)) {
    const raw = [begin, ...deltas.map(chunk), ...END];
    server.models.enqueue({ raw });
    const { held, took, status, grown } = await measure(server, { tools });
    t.comment(`${what}: ${raw.join('').length} bytes, held ${held} ms, took ${took} ms, ${grown} MiB, ${status}`);
    t.ok(held < HOLD_LIMIT && took < TIME_LIMIT, what);
    t.equal(status, what === 'many calls' ? 502 : 200, what);
  }
});

t.test('S-49 schemas that expand are cut short, or refused with the name of their tool', async (t) => {
  const model = (provider: string) => `
models:
  fast: { use: openai, provider: ${provider}, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
agents:
  assistant: { model: fast, clientTools: passthrough }
`;
  const levels = Array.from({ length: 10 }, (_, at) => at);
  const double = (key: 'properties' | 'allOf' | 'anyOf') => {
    const next = (at: number) => (at === 9 ? {} : { $ref: `#/$defs/d${at + 1}` });
    const schemas = (at: number) => Array.from({ length: 5 }, (_, n) => [`p${n}`, next(at)] as const);
    const define = (at: number) =>
      key === 'properties'
        ? { type: 'object', properties: Object.fromEntries(schemas(at)) }
        : { [key]: schemas(at).map(([, one]) => one) };
    return {
      type: 'object',
      properties: { a: { $ref: '#/$defs/d0' } },
      $defs: Object.fromEntries(levels.map((at) => [`d${at}`, define(at)])),
    };
  };
  let typed: object = { type: 'string' };
  for (let n = 0; n < 14; n++) typed = { type: ['object', 'object', 'object'], properties: { a: typed } };
  const wide = {
    type: 'object',
    $defs: { d: { description: 'x'.repeat(1_000_000) } },
    properties: Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`p${at}`, { $ref: '#/$defs/d' }])),
  };
  const attacks = {
    references: double('properties'),
    allOf: double('allOf'),
    anyOf: double('anyOf'),
    'lists of types': { type: 'object', properties: { a: typed } },
    'a long description': wide,
  };
  for (const provider of ['gemini', 'moonshot']) {
    const server = await ServerProcess.start(t, {
      yaml: TRANSPORTS + model(provider) + LOOP_DELAY,
      files: LOOP_DELAY_FILES,
      heap: 512,
    });
    for (const [what, schema] of Object.entries(attacks)) {
      for (const fields of [
        { tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] },
        { response_format: { type: 'json_schema', json_schema: { name: 'f', schema } } },
      ]) {
        const bytes = JSON.stringify(fields).length;
        const { held, took, grown, status, text } = await measure(server, fields);
        t.comment(`${provider}, ${what}: ${bytes} bytes, held ${held} ms, took ${took} ms, ${grown} MiB, ${status}`);
        t.ok(held < HOLD_LIMIT, what);
        if (status !== 200)
          t.match(JSON.parse(text), {
            error: {
              message: /^The schema of (the tool 'f'|response_format) is too large: more than \d+ KiB/,
              param: /^(tools\[0\]\.function\.parameters|response_format)$/,
            },
          });
      }
    }
    t.equal(
      (
        await measure(server, {
          tools: [{ type: 'function', function: { name: 'f', parameters: double('properties').$defs.d9 } }],
        })
      ).status,
      200,
    );
  }
});
