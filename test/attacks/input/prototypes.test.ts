import fc from 'fast-check';
import t from 'tap';
import { rounds } from '../../support/rounds.js';
import { saying } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';
import { startWithAllRoutes, TOKEN } from '../support/all-routes.js';
import { everyRoute } from '../support/every-route.js';

/** Bodies that are tried. */
const RUNS = rounds({ short: 300, long: 3_000, soak: 10_000 });
/** Enough that every route answers 200 and 400. */
const OTHER_RUNS = Math.max(500, RUNS / 2);

const server = await startWithAllRoutes(t, {
  files: {
    // Does with its arguments what must not be done with a stranger's: copies them, deeply, into an
    // object of its own.
    'merge.mjs': `
      import { definePlugin, ToolSources } from '@plugboard/kernel';
      const merge = (into, from) => {
        for (const [key, value] of Object.entries(from)) {
          if (value && typeof value === 'object' && into[key] && typeof into[key] === 'object') merge(into[key], value);
          else into[key] = value;
        }
        return into;
      };
      const run = (input) => JSON.stringify(merge({ own: {} }, structuredClone(input.own ? { own: input.own } : {}))) + String(Object.assign({}, input).admin);
      const tools = [{ name: 'merge', description: 'Merges', inputSchema: { type: 'object' }, effect: 'read', run }];
      export default definePlugin({
        name: 'merge', apiVersion: 1, summary: 'Merges', configSchema: { type: 'object', properties: {} },
        register: (ctx) => ctx.contribute(ToolSources, { single: true, tools: () => tools }),
      });
    `,
  },
  more: `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools:
  merge: { use: ./merge.mjs }
agents:
  assistant: { model: fast, tools: [merge] }
`,
});

const key = fc.constantFrom(
  ...['__proto__', 'constructor', 'prototype', 'admin', 'toString', 'hasOwnProperty', 'then', 'toJSON', 'content', 'role'].map(
    (name) => JSON.stringify(name),
  ),
  '"\\u005f\\u005fproto\\u005f\\u005f"',
);

/**
 * A value as JSON text: a parser would keep only one of two equal keys, and a literal `__proto__`
 * sets none.
 */
const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom('true', '1', '"x"', 'null', '[]', '"admin"'),
    fc.array(tie('json'), { maxLength: 2 }).map((items) => `[${items}]`),
    fc
      .array(fc.tuple(key, tie('json')), { maxLength: 3 })
      .map((members) => `{${members.map(([name, value]) => `${name}:${value}`)}}`),
    fc.constantFrom(
      '{"__proto__":{"admin":true}}',
      '{"constructor":{"prototype":{"admin":true}}}',
      '{"\\u005f_proto__":{"admin":true}}',
    ),
  ),
}));
/** Places in a body where an unexpected value may be, as the JSON text around it. */
const PLACES: Readonly<Record<string, (value: string) => string>> = {
  'the top': (value) => `"__proto__":${value},"constructor":${value},"x":${value}`,
  metadata: (value) => `"metadata":${value}`,
  'tools’ parameters': (value) => `"tools":[{"type":"function","function":{"name":"f","parameters":${value}}}]`,
  'a schema of the answer': (value) => `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":${value}}}`,
  'stream options': (value) => `"stream":true,"stream_options":${value}`,
  'logit bias': (value) => `"logit_bias":${value}`,
  'a tool choice': (value) => `"tool_choice":${value}`,
  user: (value) => `"user":${value}`,
  items: (value) => `"items":[${value}]`,
};

function assertClean(): void {
  const found = Object.keys(Object.prototype);
  if (found.length > 0 || 'admin' in {} || 'admin' in [] || 'admin' in (() => {}))
    throw new Error(`a prototype was changed: ${found}`);
}

const chat = (body: string, model: string) => {
  const start = JSON.stringify(saying('Hi', { model })).slice(0, -1);
  return server.chat(`${start},${body}}`, bearer(TOKEN));
};

t.test('S-29 no chat request changes a prototype, wherever it contains the keys', async (t) => {
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...Object.keys(PLACES)),
      json,
      fc.constantFrom('assistant', 'fast'),
      async (place, value, model) => {
        const { status, text } = await chat(PLACES[place]?.(value) ?? '', model);
        seen.set(status, (seen.get(status) ?? 0) + 1);
        if (status !== 200 && status !== 400) throw new Error(`${place}: ${status}: ${text}`);
        assertClean();
      },
    ),
    { numRuns: RUNS },
  );
  t.ok((seen.get(200) ?? 0) > RUNS / 10 && (seen.get(400) ?? 0) > RUNS / 10, `of either kind there were many: ${[...seen]}`);
});

t.test('S-29 no request to another route changes a prototype', async (t) => {
  const routes = everyRoute(server).filter(({ takesJson, path }) => takesJson && path.startsWith('/v1/conversations'));
  const place = fc.constantFrom(...Object.keys(PLACES));
  const ask = (method: string, path: string, body: string) =>
    fetch(server.url + path, { method, headers: { ...bearer(TOKEN), 'content-type': 'application/json' }, body });
  const made = await ask('POST', '/v1/conversations', '{"agent":"assistant"}');
  const { id } = (await made.json()) as { id: string };
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...routes),
      fc.array(fc.tuple(place, json), { minLength: 1, maxLength: 2 }),
      async ({ route, method, path }, parts) => {
        const odd = parts.map(([name, value]) => PLACES[name]?.(value));
        const reply = await ask(method, path.replace(/conv_0+/, id), `{"agent":"assistant",${odd}}`);
        const text = await reply.text();
        seen.add(`${reply.status} ${route}`);
        if (![200, 400].includes(reply.status)) throw new Error(`${path}: ${reply.status}: ${text}`);
        assertClean();
      },
    ),
    { numRuns: OTHER_RUNS },
  );
  for (const route of ['POST /v1/conversations', 'POST /v1/conversations/:id'])
    for (const status of [200, 400]) t.ok(seen.has(`${status} ${route}`), `${route} was answered ${status}, too`);
});

t.test('S-29 tool arguments from a model change no prototype, even if the tool copies them recursively', async (t) => {
  await fc.assert(
    fc.asyncProperty(json, async (value) => {
      const text = `{"__proto__":{"admin":true},"own":${value},"constructor":${value}}`;
      server.models.enqueue({ toolCalls: [{ name: 'merge', arguments: text }] }, { text: 'Well.' });
      const { status } = await server.chat(saying('Hi', { session_id: 'merged' }), bearer(TOKEN));
      if (status !== 200) throw new Error(`${status}`);
      const result = String(server.asked.messages.at(-1)?.content);
      if (result.endsWith('true')) throw new Error(`the arguments had another prototype: ${result}`);
    }),
    { numRuns: RUNS / 10 },
  );
  t.equal(({} as { admin?: unknown }).admin, undefined);
});

t.test('S-29 answers of a model server and query strings change no prototype', async (t) => {
  const odd = '"__proto__":{"admin":true,"content":"forged"},"constructor":{"prototype":{"admin":true}}';
  for (const stream of [false, true]) {
    server.models.respond({
      raw: [
        `data: {"choices":[{"index":0,"delta":{"content":"Hi",${odd}},${odd}}],${odd}}\n\n`,
        `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"__proto__","function":{"name":"__proto__","arguments":"{}"},${odd}}]}}]}\n\n`,
        `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{${odd}}}\n\n`,
        'data: [DONE]\n\n',
      ],
    });
    const { status, text } = await server.chat(saying('Hi', { stream }), bearer(TOKEN));
    t.ok([200, 502].includes(status));
    t.notMatch(text, /forged/);
  }
  for (const path of ['/v1/models', '/v1/conversations']) {
    await server.get(`${path}?__proto__[admin]=true&constructor[prototype][admin]=true&__proto__.admin=true`, bearer(TOKEN));
  }
  assertClean();
  t.strictSame(
    server.started.logs.filter(({ level }) => level === 'error' || level === 'fatal'),
    [],
  );
});
