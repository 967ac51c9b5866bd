import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { checkOptions, eventually } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { inBothEras, started } from './http-started.js';

inBothEras('MCP-1 finds the revision of the server, lists all its pages and calls its tools', async (t, era) => {
  const { server, files } = await started(t, era, (server) => {
    server.pageSize = 1;
  });
  t.strictSame(files.names(), ['echo', 'write']);
  t.match(files.tool('echo'), { effect: 'read' });
  t.equal(await files.text('echo', { text: 'x' }), '{"text":"x"}');
  t.equal(server.of('initialize').length, era === 'old' ? 1 : 0);
  t.equal(server.of('server/discover').length, 1, 'one probe');
  t.same(files.health(), { state: 'ok' });
});

t.test('MCP-4 each request of the new era names its version, method and tool, and repeats annotated arguments', async (t) => {
  const { server, files } = await started(t, 'new', (server) => {
    const properties = { region: { type: 'string', 'x-mcp-header': 'Region' }, n: { type: 'integer', 'x-mcp-header': 'N' } };
    const wrong = { type: 'object', properties: { a: { type: 'array', 'x-mcp-header': 'A' } } };
    server.list = [
      server.tool('übersicht', { inputSchema: { type: 'object', properties } }),
      server.tool('wrong', { inputSchema: wrong }),
    ];
    server.tools.übersicht = (call) => call.answer({ content: [] });
  });
  t.strictSame(files.names(), ['übersicht']);
  t.ok(files.lines.some((line) => line.tool === 'wrong' && /was skipped: its x-mcp-header "A"/.test(line.msg)));
  await files.call('übersicht', { region: 'Zürich', n: 7 });
  const [call] = server.of('tools/call');
  t.match(call?.headers, {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': /^=\?base64\?.*\?=$/,
    'mcp-param-region': `=?base64?${Buffer.from('Zürich').toString('base64')}?=`,
    'mcp-param-n': '7',
  });
});

t.test('MCP-4 after -32020 the list is read again and the call repeated once', async (t) => {
  const { server, files } = await started(t, 'new');
  const region = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } };
  server.list = [server.tool('echo', { inputSchema: region })];
  server.intercept = ({ id, method, headers }, response) => {
    if (method !== 'tools/call' || headers['mcp-param-region'] === 'eu') return false;
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32020, message: 'Region is missing' } }));
    return true;
  };
  t.equal(await files.text('echo', { region: 'eu' }), '{"region":"eu"}');
  await t.rejects(files.call('echo', { region: 'us' }), { code: 'mcp_call_refused', message: 'Region is missing' });
});

t.test('MCP-5 an elicitation is declined, and the state goes back byte for byte under a new id, 8 times at most', async (t) => {
  const requestState = 'ünd "so"\n\u0001';
  const { server, files } = await started(t, 'new', (server) => {
    server.tools.write = (call) => {
      if (call.params.requestState !== undefined && JSON.stringify(call.params.arguments) === '{"end":true}')
        return call.answer({ content: [] });
      const question = {
        method: 'elicitation/create',
        params: { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } },
      };
      call.answer({ resultType: 'input_required', inputRequests: { sure: question }, requestState });
    };
  });
  await files.call('write', { end: true });
  const [first, second] = server.of('tools/call');
  t.match(second?.params, { requestState, inputResponses: { sure: { action: 'decline' } } });
  t.not(first?.id, second?.id);
  await t.rejects(files.call('write'), { code: 'mcp_call_refused' });
  t.ok(server.of('tools/call').length - 2 <= 9);
});

t.test('MCP-5 a result without resultType is an error in the new era only', async (t) => {
  const { server, files } = await started(t, 'new');
  server.tools.write = (call) => {
    call.response.writeHead(200, { 'content-type': 'application/json' });
    call.response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, result: { content: [] } }));
  };
  await t.rejects(files.call('write'), { code: 'mcp_call_refused', message: /resultType/ });
});

inBothEras('MCP-7 a call that is aborted is cancelled at the server', async (t, era) => {
  const { server, files } = await started(t, era);
  const began = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  server.tools.write = (call) => {
    call.stream();
    call.response.once('close', () => closed.resolve());
    began.resolve();
  };
  const turn = new AbortController();
  const reason = new Error('the turn has ended');
  const call = files.call('write', {}, { signal: turn.signal });
  await began.promise;
  turn.abort(reason);
  await t.rejects(call, reason);
  await closed.promise;
  t.equal(server.of('notifications/cancelled').length, era === 'old' ? 1 : 0);
});

inBothEras('MCP-15 the model gets the texts, else any structured content; a link is a line with its address', async (t, era) => {
  const { server, files } = await started(t, era);
  server.tools.write = (call) => call.answer({ content: [{ type: 'text', text: 'mild' }], structuredContent: { celsius: 21 } });
  t.equal(await files.text('write'), 'mild');
  server.tools.write = (call) => call.answer({ content: [], structuredContent: { celsius: 21 } });
  t.equal(await files.text('write'), '{"celsius":21}');
  if (era === 'new') {
    server.tools.write = (call) => call.answer({ content: [], structuredContent: [1, 'two'] });
    t.match(await files.text('write'), /^\[1,\s*"two"\]$/);
  }
  server.tools.write = (call) => call.answer({ content: [{ type: 'resource_link', uri: 'http://169.254.169.254/', name: 'x' }] });
  t.match(await files.call('write'), { content: [{ type: 'other', kind: 'resource_link http://169.254.169.254/' }] });
});

inBothEras('MCP-15 an outputSchema is not followed, whatever it says', async (t, era) => {
  const outputSchema = { type: 'object', properties: { a: { $ref: 'http://169.254.169.254/schema' } }, required: ['a'] };
  const { files } = await started(t, era, (server) => {
    server.list = [server.tool('echo', { outputSchema })];
  });
  t.equal(await files.text('echo', {}), '{}');
});

inBothEras('MCP-16 roots, sampling and logging are not declared, and a server that asks gets an error', async (t, era) => {
  const { server, files } = await started(t, era);
  const declared =
    era === 'old' ? server.of('initialize')[0]?.params.capabilities : meta(server.of('tools/list')[0]?.params).clientCapabilities;
  t.strictSame(declared, { elicitation: { form: {} } });
  if (era === 'new') return;
  server.tools.write = (call) => {
    const write = call.stream();
    write({ id: 'ask', method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } });
    void eventually(() => server.received.some(({ http, id }) => http === 'POST' && id === 'ask')).then(() =>
      write({ id: call.id, result: { content: [] } }),
    );
  };
  await files.call('write');
});

function meta(params: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  const entries = Object.entries(params._meta ?? {});
  return Object.fromEntries(entries.map(([name, value]) => [name.slice(name.lastIndexOf('/') + 1), value]));
}

inBothEras(
  'MCP-14 MCP-18 a call carries the key of the call, the caller where it is asked for, and no credential',
  async (t, era) => {
    const headers = { Authorization: 'Bearer the-servers-token' };
    const { server, files } = await started(t, era, undefined, { headers, forward: 'principal' });
    await files.call('write', {}, { turnId: 'turn_1', index: 3, headers: { traceparent: '00-a-b-01' } });
    const call = server.of('tools/call')[0];
    t.match(call?.params._meta, {
      'plugboard/idempotency-key': 'turn_1/3',
      'plugboard/principal': { project: 'default' },
      traceparent: '00-a-b-01',
    });
    t.ok(server.received.every((message) => message.headers.authorization === headers.Authorization));
  },
);

inBothEras('progress reaches the turn', async (t, era) => {
  const { server, files } = await started(t, era);
  server.tools.write = (call) => {
    const write = call.stream();
    const { progressToken } = call.params._meta as { progressToken: unknown };
    write({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 4, message: 'reading' } });
    setImmediate(() => write({ id: call.id, result: { resultType: 'complete', content: [] } }));
  };
  const reported: unknown[] = [];
  await files.call('write', {}, { progress: (...args) => void reported.push(args) });
  t.strictSame(reported, [['reading', 0.25]]);
});

t.test('an option of the other form is a mistake, and one of `command` and `url` is needed', (t) => {
  const faults = (options: object) => checkOptions(plugin, options).faults;
  t.match(faults({}), [/neither `command` nor `url`/]);
  t.match(faults({ command: 'x', url: 'http://x/' }), [/^url: cannot be set together/]);
  t.match(faults({ url: 'http://x/', args: [], cwd: '.' }), [/^args: is only for entries with `command`/, /^cwd: /]);
  t.match(faults({ command: 'x', headers: { A: 'b' } }), [/^headers: is only for entries with `url`/]);
  t.match(faults({ url: 'http://x/', headers: { 'a b': 'c' } }), [/^headers.*: is not a valid header/]);
  t.match(faults({ command: 'x', pin: true, auth: { clientId: 'c' } }), [/^auth: is only for/, /^pin: is only for/]);
  t.match(faults({ url: 'http://x/', allowPrivate: ['a', 'http://a'] }), [/^allowPrivate\[1\]: "http:\/\/a" is not a host/]);
  t.match(faults({ url: 'http://u:p@x/' }), [/^url: has a user or password/]);
  t.strictSame(faults({ url: 'http://127.0.0.1:1/mcp', headers: { A: 'b' }, forward: 'principal' }), []);
  t.end();
});

t.test('mistakes in `auth` are found without a request, and no key is repeated', (t) => {
  const faults = (auth: object, rest: object = {}) =>
    checkOptions(plugin, { url: 'http://x/', auth: { clientId: 'c', ...auth }, ...rest }).faults;
  const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString();
  const ed = pem(generateKeyPairSync('ed25519').privateKey);
  const ec = pem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey);
  t.match(faults({}), [/^auth: needs `clientSecret` or `privateKey`/]);
  t.match(faults({ clientSecret: 's', privateKey: ec }), [/^auth.clientSecret: cannot be set together/]);
  t.match(faults({ clientSecret: 's', algorithm: 'RS256' }), [/^auth.algorithm: is only for `privateKey`/]);
  for (const privateKey of [ed, 'not-a-key-at-all'])
    t.match(faults({ privateKey }), [/^auth.privateKey: must be a private key without a password in PEM: of RSA, .* P-521$/]);
  t.match(faults({ privateKey: ec, algorithm: 'RS256' }), [/^auth.algorithm: does not fit the key, which can sign with ES384$/]);
  const header = { headers: { authorization: 'Bearer x' } };
  t.match(faults({ clientSecret: 's' }, header), [/^headers.authorization: cannot be set together with `auth`/]);
  t.match(faults({ clientSecret: 's', scopes: ['a b'] }), [/^auth.scopes\[0\]/]);
  t.strictSame(faults({ privateKey: ec, algorithm: 'ES384', issuer: 'https://x', scopes: ['a:b'] }), []);
  t.strictSame(faults({ privateKey: ec }), []);
  t.end();
});
