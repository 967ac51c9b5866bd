import { eventually, pluginContract } from '@plugboard/testing';
import t from 'tap';
import { TestServer, TRANSPORTS } from '../../../test/support/test-server.js';
import plugin from '../src/index.js';

const LONG = `Looks\n\nup ${'words '.repeat(2_000)}`;

/** Tools of every kind, and an interceptor that refuses, changes and postpones calls. */
const DESK = `
  import { definePlugin, ToolInterceptors, ToolSources } from '@plugboard/kernel';
  import { TurnError } from '@plugboard/kernel/contracts';
  const properties = { topic: { type: 'string' } };
  const inputSchema = { type: 'object', properties, required: ['topic'], additionalProperties: false };
  const tools = [
    { name: 'look', description: ${JSON.stringify(LONG)}, inputSchema, effect: 'read', run: ({ topic }, call) => topic === 'me'
      ? JSON.stringify({ agent: call.agent, token: call.principal.token, session: call.session ?? null })
      : 'about ' + topic },
    { name: 'a/b c', description: 'Odd.', inputSchema, run: () => 'odd' },
    { name: 'burn', description: 'Burns.', inputSchema, run: () => { throw new Error('on fire'); } },
    { name: 'wait', description: 'Waits.', inputSchema, run: (_, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))) },
    { name: 'long', description: 'Long.', inputSchema, run: () => 'x'.repeat(5_000) },
  ];
  export default definePlugin({
    name: 'desk', apiVersion: 1, summary: 'Looks things up', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      ctx.contribute(ToolSources, { tools: () => tools });
      ctx.contribute(ToolInterceptors, (call, next) => {
        if (call.input.topic === 'secrets') throw new TurnError('forbidden', 'Not this topic.');
        if (call.input.topic === 'careful') call.postpone();
        return next(call.input.topic === 'old' ? { ...call, input: { topic: 'new' } } : call);
      });
    },
  });
`;

const YAML = `${TRANSPORTS}  agents: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
tools: { desk: { use: ./desk.mjs, timeout: 200ms, resultLimit: 1kb } }
agents:
  ops:
    model: fast
    description: Helps <b>you</b>.
    system: You are ops.
    tools: [desk]
    approve: ["desk/burn"]
    params: { temperature: 0.5 }
  shy: { model: fast, tools: [desk], toolVisibility: names }
  mute: { model: fast, tools: [desk], toolVisibility: none }
  theirs: { model: fast, project: acme }
`;
const TOKENS = {
  reader: 'scopes: [models:read]',
  usual: 'scopes: [chat, models:read, sessions:read, sessions:write, approve]',
  boss: 'scopes: [models:read, admin]',
  only: 'scopes: [models:read, admin], agents: [shy]',
  acme: 'project: acme, scopes: [models:read, admin]',
};
const bearer = (name: string) => ({ authorization: `Bearer token-of-${name}-0123456789` });
const AUTH = `
projects: { acme: {} }
auth: { bearer: { tokens: [${Object.entries(TOKENS).map(tokenEntry)}] } }
`;

function tokenEntry([name, rights]: readonly [string, string]): string {
  const project = rights.startsWith('project') ? '' : 'project: default, ';
  return `{ name: ${name}, token: token-of-${name}-0123456789, ${project}${rights} }`;
}

const files = { 'desk.mjs': DESK };
const open = await TestServer.start(t, YAML.replace(', project: acme', ''), { files });
const closed = await TestServer.start(t, YAML + AUTH, { files });

const get = async (path: string, who: string) => (await closed.get(`/v1/agents/${path}`, bearer(who))) as Answer;
const run = async (tool: string, body: unknown, who = 'boss', agent = 'ops') =>
  (await closed.request('POST', `/v1/agents/${agent}/tools/desk/${tool}`, bearer(who), body)) as Answer;
const about = (topic: unknown) => ({ arguments: { topic } });

interface Answer {
  readonly status: number;
  readonly body: { readonly [field: string]: unknown; readonly error?: { readonly code?: string; readonly message: string } };
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('C-161 the card shows description, connections and tools, and settings to an administrator alone', async (t) => {
  const { status, body } = await get('ops', 'reader');
  t.equal(status, 200);
  t.match(body, {
    id: 'ops',
    object: 'agent',
    kind: 'agent',
    description: 'Helps <b>you</b>.',
    models: ['fast'],
    input: ['text', 'image'],
    tool_visibility: 'full',
  });
  t.notOk('settings' in body);
  const [look, odd, burn] = body.tools as { readonly summary: string }[];
  t.match(look, { entry: 'desk', name: 'look', effect: 'read', needs_approval: false });
  t.match(look?.summary, /^Looks up words .*…$/);
  t.ok((look?.summary.length ?? 999) <= 201, 'a list of many tools stays short');
  t.match(odd, { name: 'a/b c', effect: 'write' });
  t.match(burn, { needs_approval: true });
  t.strictSame((await get('ops', 'boss')).body.settings, { system: 'You are ops.', params: { temperature: 0.5 } });
  t.notOk('settings' in (await get('ops', 'usual')).body);
  t.match((await get('fast', 'reader')).body, { kind: 'model', tools: [], models: ['fast'], description: null });
});

t.test('C-161 a tool has its whole description and schema at its own address', async (t) => {
  const { body } = await get('ops/tools/desk/look', 'reader');
  t.equal(body.description, LONG);
  t.match(body.input_schema, { required: ['topic'] });
  t.match(await get(`ops/tools/desk/${encodeURIComponent('a/b c')}`, 'reader'), { status: 200, body: { name: 'a/b c' } });
  t.match(await get('ops/tools/desk/nothing', 'reader'), { status: 404, body: { error: { code: 'tool_not_found' } } });
});

t.test('C-162 toolVisibility hides tools from everybody', async (t) => {
  for (const who of ['reader', 'boss']) {
    const shy = (await get('shy', who)).body.tools as object[];
    t.strictSame(shy[0], { entry: 'desk', name: 'look' });
    t.match((await get('shy/tools/desk/look', who)).body, { description: null, input_schema: null });
    t.strictSame((await get('mute', who)).body.tools, []);
    t.equal((await get('mute/tools/desk/look', who)).status, 404);
  }
  for (const agent of ['shy', 'mute']) {
    const { status, body } = await run('look', about('rain'), 'boss', agent);
    t.equal(status, 403);
    t.match(body.error?.message, /hides what its tools do \(`toolVisibility: /);
  }
});

t.test('S-01 C-162 an agent that the token may not use is as unknown as one that does not exist', async (t) => {
  for (const [who, name] of [
    ['boss', 'nobody'],
    ['only', 'ops'],
    ['only', 'fast'],
    ['acme', 'ops'],
    ['acme', 'fast'],
  ] as const) {
    const error = {
      message: `The agent '${name}' does not exist`,
      type: 'invalid_request_error',
      param: 'name',
      code: 'agent_not_found',
    };
    t.strictSame((await get(name, who)).body, { error }, `${who} ${name}`);
    t.strictSame((await run('look', about('rain'), who, name)).body, { error });
    t.equal((await get(`${name}/tools/desk/look`, who)).status, 404);
  }
  t.equal((await get('theirs', 'acme')).status, 200);
  t.equal((await get('shy', 'only')).status, 200);
});

t.test('C-163 a tool runs as the model would run it, with an audit line', async (t) => {
  t.match(await run('look', about('rain')), {
    status: 200,
    body: { object: 'agent.tool_result', content: 'about rain', images: [], is_error: false, milliseconds: Number },
  });
  const line = closed.started.logs.find(({ event }) => event === 'tool_run');
  t.match(line, { log: 'audit', tool: 'desk/look', agent: 'ops', token_name: 'boss', arguments_digest: String, approved: false });
  t.notMatch(JSON.stringify(line), 'rain');
  t.match((await run('look', about('me'))).body, { content: '{"agent":"ops","token":"boss","session":null}' });
  t.match((await run('look', about('old'))).body, { content: 'about new' }, 'interceptors run');
  t.match((await run('look', about('secrets'))).body, { content: 'Not this topic.', is_error: true });
  t.match((await run('look', about(7))).body, { is_error: true, content: /topic/ });
  t.match((await run('look', {})).body, { is_error: true, content: /topic/ });
  t.match((await run('wait', about('x'))).body, { is_error: true, content: /did not finish within 0.2 s/ });
  t.match((await run('long', about('x'))).body, { content: /truncated: 5000 bytes in total/ });
});

t.test('C-164 a call that needs approval runs when the person approves it', async (t) => {
  const burnt = () => closed.started.logs.filter(({ event, tool }) => event === 'tool_run' && tool === 'desk/burn').length;
  for (const [tool, topic] of [
    ['burn', 'x'],
    ['look', 'careful'],
  ] as const) {
    t.match(await run(tool, about(topic)), { status: 409, body: { error: { code: 'approval_pending' } } }, tool);
    t.equal(burnt(), 0);
  }
  t.match((await run('look', { ...about('careful'), approve: true })).body, { content: 'about careful' });
  t.match((await run('burn', { ...about('x'), approve: true })).body, { content: 'The tool failed: on fire', is_error: true });
});

t.test('S-14 C-164 only administrators run tools, and on an open server everybody is one', async (t) => {
  for (const who of ['reader', 'usual']) {
    const { status, body } = await run('look', about('rain'), who);
    t.equal(status, 403);
    t.equal(body.error?.message, 'This API token lacks the scope `admin`.');
  }
  t.match((await open.get('/v1/agents/ops')).body, { settings: { system: 'You are ops.' } });
  t.match(await open.request('POST', '/v1/agents/ops/tools/desk/look', {}, about('rain')), {
    status: 200,
    body: { content: 'about rain' },
  });
});

t.test('bad input is refused in words', async (t) => {
  for (const [body, param] of [
    [{ arguments: 'x' }, 'arguments'],
    [{ arguments: [1] }, 'arguments'],
    [{ arguments: null }, 'arguments'],
    [{ ...about('x'), approve: 'yes' }, 'approve'],
  ] as const) {
    t.match(await run('look', body), { status: 400, body: { error: { param } } });
  }
  t.equal((await run('nothing', about('x'))).status, 404);
  const large = about('x'.repeat(100_000));
  t.match((await run('look', large)).body, { content: /truncated/ });
});

t.test('the call of a caller that leaves is ended', async (t) => {
  const patient = await TestServer.start(t, YAML.replace('timeout: 200ms', 'timeout: 60s').replace(', project: acme', ''), {
    files,
  });
  const leaving = new AbortController();
  const asked = fetch(`${patient.url}/v1/agents/ops/tools/desk/wait`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(about('x')),
    signal: leaving.signal,
  }).catch(() => {});
  await eventually(() => patient.started.logs.some(({ event }) => event === 'tool_run'));
  leaving.abort();
  await asked;
  await patient.started.stop(); // waits for running tools
});
