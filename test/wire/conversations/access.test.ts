import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { bodyOf, Caller, CONVERSATION_TRANSPORTS, type ConversationBody, type PageBody } from '../../support/conversations.js';
import { errorOf, type Reply, TestServer } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';

/** Two tenants that may do everything, and a token for each way to lack something. */
const PRINCIPALS = {
  acme: { project: 'acme', scopes: ['chat', 'sessions:read', 'sessions:write'] },
  beta: { project: 'beta', scopes: ['chat', 'sessions:read', 'sessions:write'] },
  default: { project: 'default', scopes: ['chat', 'sessions:read', 'sessions:write'] },
  'acme-desk': { project: 'acme', agents: ['desk'], scopes: ['chat', 'sessions:read', 'sessions:write'] },
  reader: { project: 'acme', scopes: ['sessions:read'] },
  writer: { project: 'acme', scopes: ['sessions:write'] },
  chatter: { project: 'acme', scopes: ['chat', 'models:read'] },
  nobody: { project: 'acme', scopes: [] },
};

const TOKENS_BY_HEART = `
  import { AuthProviders, definePlugin } from '@plugboard/kernel';
  const principals = new Map(Object.entries(${JSON.stringify(PRINCIPALS)}));
  export default definePlugin({
    name: 'by-heart', apiVersion: 1, summary: 'Knows tokens by heart', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(AuthProviders, {
      authenticate: ({ bearer }) => principals.has(bearer) ? { principal: principals.get(bearer) } : undefined,
    }),
  });
`;

const yaml = (sessions: string) => `${CONVERSATION_TRANSPORTS}
sessions: ${sessions}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  desk: { model: fast, project: acme }
  lab: { model: fast, project: acme }
  office: { model: fast, project: beta }
projects: { acme: { defaultAgent: desk }, beta: {} }
auth: { by-heart: { use: ./by-heart.mjs } }
`;

const NOWHERE = `conv_${'0'.repeat(40)}`;
const items = [{ role: 'user', content: 'The secret of acme.' }];

/** All routes, with an id in its place, and what it takes to call them. */
const routes = (id: string, item: string) =>
  [
    ['GET', '', undefined, ['reader']],
    ['POST', '', { items }, ['writer']],
    ['GET', `/${id}`, undefined, ['reader']],
    ['POST', `/${id}`, { metadata: { by: 'someone' } }, ['writer']],
    ['GET', `/${id}/items`, undefined, ['reader']],
    ['GET', `/${id}/items/${item}`, undefined, ['reader']],
    ['POST', `/${id}/items`, { items }, ['writer']],
    ['POST', `/${id}/cancel`, undefined, ['writer']],
    ['POST', `/${id}/fork`, {}, []],
    ['DELETE', `/${id}`, undefined, ['writer']],
  ] as const;

for (const store of ['{ use: memory }', '{ use: sqlite, path: ./sessions.db }']) {
  t.test(`with sessions: ${store}`, async (t) => {
    const server = await TestServer.start(t, yaml(store), { files: { 'by-heart.mjs': TOKENS_BY_HEART } });
    const [acme, beta, all] = [new Caller(server, 'acme'), new Caller(server, 'beta'), new Caller(server, 'default')];
    const listed = async (caller: Caller, query = '') =>
      bodyOf<PageBody<ConversationBody>>(await caller.get(`?limit=100${query}`)).data.map(({ key, agent }) => `${agent}/${key}`);
    const chat = (token: string, model: string, fields: object, headers: Record<string, string> = {}): Promise<Reply> =>
      server.chat(
        { model, messages: [{ role: 'user', content: 'What do you know?' }], ...fields },
        { ...bearer(token), ...headers },
      );
    const heard = () => JSON.stringify(server.asked.messages);

    t.test('S-01 S-03 an id of another project is not found, on every route and with the same body', async (t) => {
      const { id } = await acme.create({ id: 'shared', items });
      const item = (await acme.items(id))[0]?.id ?? '';
      for (const caller of [beta, all]) {
        for (const [method, path, body] of routes(id, item).filter(([, path]) => path !== '')) {
          const reply = await caller.send(method, path, body);
          t.equal(reply.status, 404, `${method} ${path}`);
          t.equal(reply.text, (await caller.send(method, path.replace(id, NOWHERE), body)).text);
          t.notMatch(reply.text, /secret|acme|desk|shared/);
        }
        const after = await caller.get(`?after=${id}`);
        t.equal(after.text.replace(id, NOWHERE), (await caller.get(`?after=${NOWHERE}`)).text);
      }
      t.match(bodyOf(await acme.get(`/${id}`)), { turns: 1, metadata: {} }, 'nothing happened to it');
    });

    t.test('S-01 a chat completion with a key or id of another project does not see that session', async (t) => {
      const { id } = await acme.create({ id: 'talk', items });
      for (const [token, model] of [
        ['beta', 'office'],
        ['default', 'desk'],
      ] as const) {
        for (const [fields, headers] of [
          [{ session_id: 'talk' }, {}],
          [{ user: 'talk' }, {}],
          [{}, { 'x-session-id': 'talk' }],
        ] as const) {
          t.equal((await chat(token, model, fields, headers)).status, 200);
          t.notMatch(heard(), /secret/);
        }
        for (const [fields, headers] of [
          [{ session_id: id }, {}],
          [{}, { 'x-session-id': id }],
        ] as const) {
          const reply = await chat(token, model, fields, headers);
          t.equal(reply.status, 404);
          t.equal(errorOf(reply).code, 'conversation_not_found');
          t.equal(reply.text, (await chat(token, model, { session_id: NOWHERE })).text);
        }
      }
      t.equal((await chat('acme', 'desk', { session_id: id })).status, 200);
      t.match(heard(), /secret/, 'its own project does');
    });

    t.test('S-04 a list shows no sessions of other projects, and no fork under another’s key', async (t) => {
      await beta.create({ agent: 'office', id: 'ours' });
      t.ok((await listed(beta)).every((name) => name.startsWith('office/')));
      t.ok((await listed(acme)).every((name) => name.startsWith('desk/')));
      const { id } = await acme.create({ id: 'to-fork' });
      bodyOf(await acme.post(`/${id}/fork`, { id: 'ours' }));
      t.ok((await listed(acme)).includes('desk/ours'));
      t.notOk((await listed(beta)).includes('desk/ours'));
      const own = await listed(all);
      t.strictSame(own, ['desk/talk'], 'the default project reaches agents of others, and its own sessions');
    });

    t.test('S-04 a token for one agent sees only that agent’s conversations', async (t) => {
      const one = new Caller(server, 'acme-desk');
      const { id } = await acme.create({ agent: 'lab', id: 'experiment', items });
      t.ok((await listed(acme)).includes('lab/experiment'));
      t.notOk((await listed(one)).includes('lab/experiment'));
      for (const [method, path, body] of routes(id, (await acme.items(id))[0]?.id ?? '').filter(([, path]) => path !== '')) {
        t.equal((await one.send(method, path, body)).status, 404, `${method} ${path}`);
      }
      t.equal((await one.post('', { agent: 'lab' })).status, 403);
    });

    t.test('C-070 an agent of another project gets a 403, an unknown one without a default agent a 400', async (t) => {
      const forbidden = await acme.post('', { agent: 'office', id: 'x' });
      t.equal(forbidden.status, 403);
      t.strictSame(errorOf(forbidden), {
        message:
          'This API token may not use the agent that `agent` names: it is of another project, or the token is for other agents. ' +
          'GET /v1/models lists what it may use.',
        type: 'svc_error',
      });
      for (const fields of [{}, { agent: 'nobody' }, { agent: 'fast' }]) {
        const unknown = await beta.post('', fields);
        t.equal(unknown.status, 400);
        t.strictSame(Object.keys(errorOf(unknown)), ['message', 'type']);
      }
    });

    t.test('S-14 each route requires its scopes, and a refused request changes nothing', async (t) => {
      const { id } = await acme.create({ id: 'matrix', items });
      const item = (await acme.items(id))[0]?.id ?? '';
      for (const token of ['reader', 'writer', 'chatter', 'nobody'] as const) {
        for (const [method, path, body, enough] of routes(id, item)) {
          if ((enough as readonly string[]).includes(token)) continue;
          const reply = await new Caller(server, token).send(method, path, body);
          t.equal(reply.status, 403, `${token}: ${method} ${path}`);
          t.match(errorOf(reply), { type: 'svc_error', message: /lacks the scope `sessions:(read|write)`/ });
        }
      }
      for (const [method, path, body] of routes(id, item)) {
        t.equal((await new Caller(server).send(method, path, body)).status, 401, `without a token: ${method} ${path}`);
      }
      t.match(bodyOf(await acme.get(`/${id}`)), { turns: 1, metadata: {} });
      for (const [method, path, body, [token]] of routes(id, item)) {
        const caller = new Caller(server, token ?? 'acme');
        t.equal((await caller.send(method, path, body)).status, 200, `${token ?? 'both'}: ${method} ${path}`);
      }
    });

    t.test('S-15 odd ids are not found and open no file', async (t) => {
      const before = readdirSync(server.started.folder).sort();
      const odd = [
        '../../etc/passwd',
        '..%2f..',
        '..\\..',
        'C:\\boot.ini',
        '/etc/passwd',
        'a\0b',
        "'; drop table session; --",
        '%',
        'ü',
        '*',
        NOWHERE.toUpperCase(),
        'x'.repeat(10_000),
        '__proto__',
      ];
      for (const text of odd) {
        const id = encodeURIComponent(text);
        for (const [method, path, body] of routes(id, 'msg_1').filter(([, path]) => path !== '')) {
          const reply = await acme.send(method, path, body);
          t.equal(reply.status, 404, `${method} ${path.slice(0, 60)}`);
          t.equal(errorOf(reply).code, 'conversation_not_found');
        }
        const known = await acme.create({ items });
        t.equal((await acme.get(`/${known.id}/items/${id}`)).status, 404);
        t.equal((await acme.post(`/${known.id}/fork`, { after_item: text })).status, 400);
        if (Buffer.byteLength(text) <= 512 && !text.includes('\0')) {
          const made = await acme.create({ id: text, items });
          t.equal(made.key, text);
          t.match(bodyOf(await acme.delete(`/${made.id}`)), { deleted: true });
        } else {
          t.equal((await acme.post('', { id: text })).status, 400);
        }
      }
      t.strictSame(readdirSync(server.started.folder).sort(), before);
    });

    t.test('S-18 no filter or cursor returns foreign data or breaks the store', async (t) => {
      const own = await listed(acme);
      const text = fc.oneof(
        fc.string({ unit: 'binary', maxLength: 20 }),
        fc.constantFrom(
          "' or 1=1 --",
          '" or ""="',
          '%',
          '_',
          '*',
          '$ne',
          '{"$gt":""}',
          '__proto__',
          'constructor',
          "x'; drop table session",
          NOWHERE,
        ),
      );
      const name = fc.oneof(
        fc.constantFrom(
          'user',
          'after',
          'limit',
          'order',
          'project',
          'agent',
          'agents',
          'metadata[a]',
          'filter',
          'user[]',
          '__proto__',
        ),
        fc.string({ maxLength: 10 }),
      );
      const query = fc.array(fc.tuple(name, text), { maxLength: 4 });
      await fc.assert(
        fc.asyncProperty(query, async (pairs) => {
          const reply = await acme.get(
            `?${new URLSearchParams(pairs.map(([key, value]): [string, string] => [key, value.toWellFormed()]))}`,
          );
          if (reply.status === 400) return errorOf(reply).type === 'invalid_request_error';
          return bodyOf<PageBody<ConversationBody>>(reply).data.every(({ agent, key }) => own.includes(`${agent}/${key}`));
        }),
        { numRuns: 80 },
      );
      for (const user of ["' or 1=1 --", '%', '_', '*'])
        t.strictSame(await listed(acme, `&user=${encodeURIComponent(user)}`), []);
      t.strictSame(await listed(acme), own, 'and all is still there');
    });
  });
}
