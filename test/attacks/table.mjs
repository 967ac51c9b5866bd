// What each attack of docs/reference/authentication.md (S-49 to S-76) costs a server, and what a
// caller of another project gets meanwhile:
//
//   npm run build && node test/attacks/table.mjs [--root FOLDER] [--only schema,item]
//
// FOLDER holds another version of the repository, built: this one by default. Each attack has a
// server of its own with a heap of 256 MiB.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ModelServer } from '@plugboard/testing';
import { WebSocket } from 'ws';
import { HOSTILE_MCP, hostileEntries, imagesAt, startHostileUpstream } from './support/hostile-upstream.ts';

const { values } = parseArgs({
  options: {
    root: { type: 'string', default: resolve(import.meta.dirname, '../..') },
    only: { type: 'string' },
    verbose: { type: 'boolean' },
  },
});
const root = resolve(values.root);

const MIB = 1024 * 1024;
const HEAP = 256;
/** Seconds that an attack is watched. */
const WATCH = 12;
const [ATTACKER, INNOCENT] = ['token-of-the-attacker', 'token-of-the-neighbour'];

const hostile = await startHostileUpstream();
const { models, agents } = hostileEntries('acme');

const YAML = `
transports:
  { http: { port: 0 }, chat-completions: {}, responses: {}, messages: {}, approvals: {}, websocket: {}, conversations: {}, models: {}, health: {}, sse: {} }
sessions: { use: sqlite, path: ./sessions.db }
auth: { bearer: { tokens: [
  { name: attacker, project: acme, token: ${ATTACKER} }, { name: neighbour, project: beta, token: ${INNOCENT} } ] } }
projects: { acme: {}, beta: {} }
plugins: { watch: { use: ./watch.mjs } }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: fast, apiKey: x, contextWindow: 100000000, input: [text, image] }
  good: { use: openai, baseUrl: "\${MODEL_URL}", model: good, apiKey: x }
  gemini: { use: openai, provider: gemini, baseUrl: "\${MODEL_URL}", model: gemini, apiKey: x }
${models.trimEnd()}
  page-model: { use: openai, baseUrl: "\${HOSTILE_URL}/html", model: m, apiKey: x }
tools: { own: { use: ./own.mjs }, mcp: { command: node, args: [./mcp.mjs] } }
agents:
  assistant: { model: fast, project: acme }
  caller: { model: fast, project: acme, tools: [own] }
  limited: { model: fast, project: acme, maxTokens: 20000 }
  translated: { model: gemini, project: acme, clientTools: passthrough }
${agents.trimEnd()}
  page: { model: page-model, project: acme }
  coder: { model: fast, project: acme, clientTools: passthrough }
  asking: { model: fast, project: acme, tools: [own], approve: write }
  served: { model: fast, project: acme, tools: [mcp] }
  other: { model: good, project: beta }
log: { level: error }
`;

const FILES = {
  'mcp.mjs': HOSTILE_MCP,
  'watch.mjs': `
    import { definePlugin } from '@plugboard/kernel';
    import { HttpRoutes } from '@plugboard/transport-http';
    export default definePlugin({
      name: 'watch', apiVersion: 1, summary: 'Measures', configSchema: { type: 'object', properties: {} },
      register(ctx) {
        let longest = 0;
        let at = performance.now();
        setInterval(() => {
          const now = performance.now();
          longest = Math.max(longest, now - at - 10);
          at = now;
        }, 10).unref();
        ctx.contribute(HttpRoutes, {
          method: 'GET', path: '/longest', access: 'public', body: 'none', startsWork: false,
          handle: () => ({ status: 200, body: { longest: [longest, (longest = 0)][0] } }),
        });
      },
    });`,
  'own.mjs': `
    import { definePlugin, ToolSources } from '@plugboard/kernel';
    const properties = { q: { type: 'string' }, slow: { type: 'string', pattern: '^(a+)+$' } };
    const image = { type: 'image', mimeType: 'image/png', data: 'A'.repeat(10 * 1024 * 1024) };
    const tools = [
      { name: 'find', description: '', effect: 'read', inputSchema: { type: 'object', properties }, run: async () => 'found' },
      { name: 'send', description: '', effect: 'write', inputSchema: { type: 'object' }, run: async () => 'sent' },
      {
        name: 'shoot', description: '', effect: 'read', inputSchema: { type: 'object' },
        run: async () => ({ content: Array(6).fill(image) }),
      },
    ];
    export default definePlugin({
      name: 'own', apiVersion: 1, summary: 'Tools', configSchema: { type: 'object', properties: {} },
      register: (ctx) => ctx.contribute(ToolSources, { single: false, tools: async () => tools }),
    });`,
};

const list = (length, make) => Array.from({ length }, (_, at) => make(at));
const user = (content) => [{ role: 'user', content }];
const chunk = (delta) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;
const never = new Promise(() => {});

/**
 * Each prepares its attack, and returns what sends it and resolves when it is answered. `s` is a
 * `Subject`.
 */
const ATTACKS = {
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
  'an item of 1 MB named 400 times': async (s) => {
    s.queue.push({ text: 'x'.repeat(MIB) });
    const { output } = await s.setUp('/v1/responses', { model: 'assistant', input: 'Hi' });
    const input = [...Array(400).fill({ type: 'item_reference', id: output[0].id }), { role: 'user', content: 'And?' }];
    return () => Promise.all([1, 2, 3].map(() => s.post('/v1/responses', { model: 'assistant', input, store: false })));
  },
  'ten turns of large conversations': async (s) => {
    const [id] = await s.conversation();
    const forks = [];
    for (let n = 0; n < 9; n++) forks.push((await s.setUp(`/v1/conversations/${id}/fork`, {})).id);
    s.otherwise = { text: ['A', never] };
    return async () => {
      const turns = [id, ...forks].map((conversation) => s.chat({ model: 'assistant', conversation, messages: user('Hi') }));
      await Promise.race([Promise.all(turns), wait(8_000)]);
      const sizes = s.models.requests.map(({ body }) => (body.model === 'fast' ? JSON.stringify(body).length : 0));
      s.note = `${size(Math.max(...sizes))} to the model at most`;
    };
  },
  'eight continuations of a large response': async (s) => {
    const [, previous_response_id] = await s.conversation();
    s.otherwise = { text: ['A', never] };
    return () =>
      Promise.all(
        Array.from({ length: 8 }, () =>
          s.post('/v1/responses', { model: 'assistant', input: 'Hi', previous_response_id, store: false }),
        ),
      );
  },
  'thirty bodies of 195,000 empty objects': (s) => async () => {
    s.otherwise = { text: ['A', never] };
    const body = `{"model":"assistant","messages":[{"role":"user","content":"Hi"}],"x":[${'{},'.repeat(194_000)}{}]}`;
    await Promise.all(Array.from({ length: 30 }, () => s.chat(body)));
  },
  'ephemeral tokens with 190,000 agents': (s) => async () => {
    const body = JSON.stringify({ agents: Array.from({ length: 190_000 }, (_, n) => `agent-with-a-long-name-${n}`) });
    for (let n = 0; n < 40; n++) await s.post('/v1/ephemeral_tokens', body);
  },
  '160 KB of arguments in words': (s) => async () => {
    const words = ['{"q":"', ...Array(40_000).fill('abc '), '"}'];
    const call = (piece, id) => chunk({ tool_calls: [{ index: 0, id, function: { name: 'own__find', arguments: piece } }] });
    const end = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n';
    s.queue.push({ raw: [call('', 'a'), ...words.map((word) => call(word)), end] });
    await s.chat({ model: 'caller', messages: user('Hi') });
  },
  'an answer without end': (s) => async () => {
    s.otherwise = { raw: Array(8_000).fill(chunk({ content: 'word '.repeat(10_000) })) };
    await s.chat({ model: 'assistant', messages: user('Hi') });
  },
  'a pattern that backtracks': (s) => async () => {
    s.queue.push({ toolCalls: [{ name: 'own__find', arguments: { slow: `${'a'.repeat(34)}!` } }] });
    await s.chat({ model: 'caller', messages: user('Hi') });
  },
  'chunks of one byte, without a token': (s) => async () => {
    const pieces = '1\r\n \r\n'.repeat(10_000);
    const one = async () => {
      const socket = connect(s.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.resume();
      await once(socket, 'connect');
      socket.write('POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n');
      while (!socket.destroyed && !s.isOver) {
        s.bytes += pieces.length;
        if (!socket.write(pieces))
          await Promise.race([once(socket, 'drain'), once(socket, 'close'), wait(1_000)]).catch(() => {});
      }
    };
    while (!s.isOver) await Promise.all([one(), one(), one(), one()]);
  },
  '60 MB of images of a tool': (s) => async () => {
    s.queue.push({ toolCalls: [{ name: 'own__shoot', arguments: {} }] });
    await s.chat({ model: 'caller', messages: user('Look'), session_id: 's' });
  },
  'a compaction beyond the token limit': (s) => async () => {
    const input = Array.from({ length: 1_000 }, (_, n) => ({
      role: n % 2 ? 'assistant' : 'user',
      content: 'word '.repeat(1_000),
    }));
    await s.post('/v1/responses/compact', { model: 'limited', input });
    const sent = s.models.requests.findLast(({ body }) => body.model === 'fast')?.body ?? '';
    s.note = `${size(JSON.stringify(sent).length)} sent to the model`;
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
  'S-66: 1,000 repetitions of an answer of 300 KB': async (s) => {
    s.queue.push({ text: Array(60).fill('word '.repeat(1_000)) });
    const body = { model: 'assistant', stream: true, messages: user('Hi') };
    const send = () => s.post('/v1/chat/completions', body, ATTACKER, { 'idempotency-key': 'one' });
    await send();
    return () => Promise.all(list(1_000, send));
  },
  'S-67: 30 sockets that watch a message of 9 MB': async (s) => {
    const { id } = await s.setUp('/v1/conversations', { agent: 'assistant', id: 'watched' });
    await Promise.all(list(30, () => s.watch(id)));
    return () => s.chat({ model: 'assistant', session_id: 'watched', messages: user('x'.repeat(9 * MIB)) });
  },
  'S-68: 20 images of 9 MB by address': (s) => () =>
    Promise.all(['a', 'b'].map((prefix) => s.chat({ model: 'seeing', messages: [imagesAt(hostile.url, 10, prefix)] }))),
  'S-69: 50 calls that wait in a turn of 1 MB, approved': async (s) => {
    s.queue.push({ toolCalls: Array(50).fill({ name: 'own__send', arguments: {} }) });
    const schema = { type: 'object', description: 'x'.repeat(MIB), properties: {}, additionalProperties: false };
    const text = { format: { type: 'json_schema', name: 'large', schema } };
    const { id, output = [] } = await s.setUp('/v1/responses', { model: 'asking', input: 'Send', text });
    s.note = `${output.filter(({ type }) => type === 'mcp_approval_request').length} waited`;
    return async () => {
      const asked = output.filter(({ type }) => type === 'mcp_approval_request');
      const decisions = asked.map(({ id }) => ({ type: 'mcp_approval_response', approval_request_id: id, approve: true }));
      const lists = list(20, () => s.get('/v1/approvals?limit=100'));
      await Promise.all([...lists, s.post('/v1/responses', { model: 'asking', input: decisions, previous_response_id: id })]);
    };
  },
  'S-70: 20 continuations of 9 MB that are carried': async (s) => {
    const carried = { type: 'message', role: 'developer', content: 'y'.repeat(9 * MIB) };
    const { id: previous_response_id } = await s.setUp('/v1/responses', { model: 'assistant', input: [carried, ...user('Hi')] });
    s.otherwise = { text: ['A', never] };
    return () => Promise.all(list(20, () => s.post('/v1/responses', { model: 'assistant', input: 'Hi', previous_response_id })));
  },
  'S-71: 80 readers of an item of 9 MB': async (s) => {
    const items = [{ type: 'message', role: 'user', content: 'x'.repeat(9 * MIB) }];
    const { id } = await s.setUp('/v1/conversations', { agent: 'assistant', items });
    return () => Promise.all(list(80, () => s.repeat(() => s.get(`/v1/conversations/${id}/items`), 8_000)));
  },
  'S-71: 16 connections that repeat a short GET': (s) => () =>
    Promise.all(list(16, () => s.repeat(() => s.get('/v1/models'), 8_000))),
  'S-72: 3,584 half bodies of one token': (s) => async () => {
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer ${ATTACKER}\r\nContent-Length: 9999\r\n\r\n{`;
    for (let n = 0; n < 3_584; n++) {
      s.bytes += head.length;
      const socket = connect(s.port, '127.0.0.1', () => socket.write(head)).on('error', () => {});
      socket.once('data', (data) => s.count(String(data).slice(9, 12)));
      if (n % 64 === 0) await wait(5);
    }
    await wait(4_000);
  },
  'S-75: events, errors and zipped answers without end': (s) => () =>
    Promise.all(list(24, (at) => s.chat({ model: ['event', 'error', 'compressed'][at % 3], messages: user('Hi') }))),
  'S-75: eight results of 100 MiB of an MCP server': (s) => async () => {
    s.queue.push(...list(8, () => ({ toolCalls: [{ name: 'mcp__large', arguments: {} }] })));
    await Promise.all(list(8, () => s.chat({ model: 'served', messages: user('Go') })));
  },
  'S-75: 4,000 reports of 100 KB of an MCP server': (s) => async () => {
    s.queue.push(...list(8, () => ({ toolCalls: [{ name: 'mcp__reports', arguments: {} }] })));
    await Promise.all(list(8, () => s.chat({ model: 'served', stream: true, messages: user('Go') })));
  },
  'S-76: pages of HTML that repeat <title': (s) => () =>
    Promise.all(list(20, () => s.chat({ model: 'page', messages: user('Hi') }))),
  'S-76: 40 cancels of a conversation of 54 MB': async (s) => {
    const [id] = await s.conversation();
    return () => Promise.all(list(40, () => s.post(`/v1/conversations/${id}/cancel`, {})));
  },
};

/** A server under attack. */
class Subject {
  bytes = 0;
  statuses = {};
  isOver = false;
  note = '';
  /** What the model of the attacker answers next, and then. */
  queue = [];
  otherwise = { text: 'Hello' };

  static async start(folder, models) {
    const bin = ['plugins/cli', 'kernel'].map((folder) => join(root, folder, 'bin/plugboard.js')).find(existsSync);
    const child = spawn(process.execPath, [`--max-old-space-size=${HEAP}`, bin, 'start'], {
      cwd: folder,
      env: { PATH: process.env.PATH, MODEL_URL: models.url, HOSTILE_URL: hostile.url },
      stdio: ['ignore', 'pipe', values.verbose ? 'inherit' : 'ignore'],
    });
    const subject = new Subject();
    Object.assign(subject, { child, models });
    let output = '';
    child.stdout.on('data', (text) => {
      output += text;
    });
    while (!subject.port && subject.isAlive) {
      await wait(20);
      subject.port = Number(/^ {2}address +http:\/\/\S+:(\d+)$/m.exec(output)?.[1] ?? 0);
    }
    if (!subject.isAlive) throw new Error(`the server did not start: ${output}`);
    subject.url = `http://127.0.0.1:${subject.port}`;
    return subject;
  }

  get isAlive() {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  chat(body) {
    return this.post('/v1/chat/completions', body);
  }

  get(path) {
    return this.post(path, undefined);
  }

  /** Does something again and again, for so many milliseconds. */
  async repeat(what, length) {
    const end = performance.now() + length;
    while (!this.isOver && this.isAlive && performance.now() < end) await what();
  }

  /** Watches a conversation on a socket. */
  async watch(conversation) {
    const headers = { authorization: `Bearer ${ATTACKER}` };
    const socket = new WebSocket(`ws://127.0.0.1:${this.port}/v1/live`, { headers }).on('error', () => {});
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'svc:conversation.watch', conversation }));
    await once(socket, 'message');
  }

  count(status) {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
  }

  async post(path, body, token = ATTACKER, more = {}) {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    this.bytes += text?.length ?? 0;
    let status = 'broken';
    try {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...more };
      const response = await fetch(this.url + path, {
        method: text === undefined ? 'GET' : 'POST',
        headers,
        body: text,
        signal: AbortSignal.timeout(WATCH * 1_000),
      });
      const answer = await response.text();
      status = response.status;
      return response.ok && answer.startsWith('{') ? JSON.parse(answer) : undefined;
    } catch (error) {
      if (error.name === 'TimeoutError') status = 'waiting';
      return undefined;
    } finally {
      this.count(status);
    }
  }

  /** What is not the attack yet. */
  async setUp(path, body) {
    const answer = await this.post(path, body);
    this.bytes = 0;
    this.statuses = {};
    return answer ?? {};
  }

  /** Makes a conversation of 54 MB. @returns its id, and that of a response of the same size. */
  async conversation() {
    const content = 'x'.repeat(3 * MIB);
    for (let n = 0; n < 18; n++)
      await this.setUp('/v1/chat/completions', { model: 'assistant', session_id: 'large', messages: user(content) });
    const list = await fetch(`${this.url}/v1/conversations`, { headers: { authorization: `Bearer ${ATTACKER}` } });
    let last;
    for (let n = 0; n < 18; n++)
      last = await this.setUp('/v1/responses', {
        model: 'assistant',
        input: content,
        ...(last?.id && { previous_response_id: last.id }),
      });
    return [(await list.json()).data?.[0]?.id, last?.id];
  }

  /** Resident memory now, in MiB, or its peak. */
  memory(field) {
    const [, kib] =
      new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${this.child.pid}/status`, 'utf8')) ?? [];
    return Number(kib ?? 0) / 1024;
  }

  async longest() {
    try {
      const response = await fetch(`${this.url}/longest`, { signal: AbortSignal.timeout(3_000) });
      return (await response.json()).longest;
    } catch {
      return undefined;
    }
  }
}

async function measure(name, attack) {
  const models = await ModelServer.start();
  const folder = mkdtempSync(join(tmpdir(), 'plugboard-attack-'));
  for (const [file, text] of Object.entries({ 'plugboard.yaml': YAML, ...FILES })) writeFileSync(join(folder, file), text);
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const subject = await Subject.start(folder, models);
  models.respond(({ body }) => (body.model === 'good' ? { text: 'Hello' } : (subject.queue.shift() ?? subject.otherwise)));
  let peak = 0;
  const innocent = { served: 0, slowest: 0, refused: 0 };
  const watch = setInterval(() => {
    if (subject.isAlive) peak = Math.max(peak, subject.memory('VmHWM'));
  }, 50);
  let ended;
  subject.child.once('exit', () => {
    ended = performance.now();
  });
  const neighbour = async () => {
    while (!subject.isOver && subject.isAlive) {
      const at = performance.now();
      const ok = await askOnce(subject);
      const took = performance.now() - at;
      if (ok) innocent.served++;
      else innocent.refused++;
      innocent.slowest = Math.max(innocent.slowest, took);
      await wait(20);
    }
  };
  const send = await attack(subject);
  writeFileSync(`/proc/${subject.child.pid}/clear_refs`, '5'); // the peak of resident memory begins again
  const start = subject.memory('VmRSS');
  peak = start;
  await subject.longest();
  const begun = performance.now();
  const asking = neighbour();
  await Promise.race([send().then(() => wait(2_000)), wait(WATCH * 1_000), once(subject.child, 'exit')]);
  const longest = subject.isAlive ? await subject.longest() : undefined;
  const until = performance.now();
  subject.isOver = true;
  await Promise.race([asking, wait(3_000)]);
  clearInterval(watch);
  const isAlive = subject.isAlive;
  subject.child.kill('SIGKILL');
  await models.close();
  rmSync(folder, { recursive: true, force: true });
  const stall = !isAlive
    ? `ended after ${seconds((ended ?? begun) - begun)}`
    : longest === undefined
      ? 'stands still'
      : `${Math.round(longest)} ms`;
  const statuses = Object.entries(subject.statuses)
    .map(([status, count]) => `${count} × ${status}`)
    .join(', ');
  return [
    name,
    size(subject.bytes),
    `+${Math.round(peak - start)} MiB`,
    stall,
    `${(innocent.served / ((until - begun) / 1_000)).toFixed(1)} /s`,
    seconds(innocent.slowest),
    String(innocent.refused),
    [statuses, subject.note].filter(Boolean).join('; '),
  ];
}

/** One request of the caller of another project. @returns whether it is served. */
async function askOnce({ url }) {
  const headers = { authorization: `Bearer ${INNOCENT}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model: 'other', messages: user('Hello') });
  try {
    const signal = AbortSignal.timeout(WATCH * 1_000);
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body, signal });
    await response.text();
    return response.ok;
  } catch {
    return false;
  }
}

function size(bytes) {
  if (bytes >= MIB) return `${(bytes / MIB).toFixed(1)} MB`;
  return bytes >= 1024 ? `${Math.round(bytes / 1024)} KB` : `${bytes} B`;
}

function seconds(ms) {
  return ms >= 1_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms)} ms`;
}

console.log('| attack | sent | resident, above the start | longest stall | others: rate | slowest | refused | answers |');
console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
for (const [name, attack] of Object.entries(ATTACKS)) {
  if (values.only && !values.only.split(',').some((one) => name.includes(one))) continue;
  console.log(`| ${(await measure(name, attack)).join(' | ')} |`);
}
process.exit();
