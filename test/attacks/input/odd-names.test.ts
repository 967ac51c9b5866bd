import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { RawClient, replyOf } from '../../../plugins/transport-http/test/support/raw-client.js';
import { Caller, type ConversationBody, type PageBody } from '../../support/conversations.js';
import { type Reply, saying, type TestServer } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';
import { startWithAllRoutes, TOKEN } from '../support/all-routes.js';
import { everyRoute } from '../support/every-route.js';
import { FILE_MARKER, ODD_NAMES } from '../support/odd-names.js';
import { treeOf } from '../support/tree.js';

const SECRET = 'The treasure lies under the oak.';
const files = { 'canary/secret.txt': SECRET };

/** What a server writes there by itself. */
const OWN = /^data(\/(sessions\.db(-wal|-shm|-journal)?|tokens\.json\.used))?$/;

/** Where a relative name could have led to. */
const folders = (server: TestServer) => {
  const { folder } = server.started;
  return [process.cwd(), tmpdir(), folder, join(folder, 'data'), dirname(folder), dirname(process.cwd()), '/'];
};

function assertNoFile(t: Test, server: TestServer): void {
  for (const folder of folders(server)) {
    for (const name of ODD_NAMES.filter((name) => name.includes(FILE_MARKER) && !name.includes('\0'))) {
      for (const path of [name, decodeURIComponent(name), name.replaceAll('\\', '/')]) {
        if (!path.includes('\0') && existsSync(resolve(folder, path))) t.fail(`there is ${resolve(folder, path)}`);
      }
    }
  }
}

/** The names of the tables and indexes in the file that a server has let go of. */
function schemaOf(server: TestServer): readonly unknown[] {
  const database = new DatabaseSync(join(server.started.folder, 'data/sessions.db'), { readOnly: true });
  try {
    return database.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all();
  } finally {
    database.close();
  }
}

/** Every field of a chat request that is a name of something. */
const FIELDS: readonly ((name: string) => object)[] = [
  (user) => ({ user }),
  (session_id) => ({ session_id }),
  (name) => ({ user: name, session_id: name }),
  (model) => ({ model }),
  (model) => ({ model, session_id: 'known' }),
  (prompt_cache_key) => ({ prompt_cache_key }),
  (safety_identifier) => ({ safety_identifier }),
  (name) => ({ metadata: { [name]: name } }),
  (name) => ({ messages: [{ role: 'user', name, content: 'Hi' }] }),
  (name) => ({
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', tool_calls: [{ id: name, type: 'function', function: { name, arguments: name } }] },
      { role: 'tool', tool_call_id: name, content: name },
    ],
  }),
  (name) => ({ messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: name, filename: name } }] }] }),
  (name) => ({ tools: [{ type: 'function', function: { name } }], tool_choice: { type: 'function', function: { name } } }),
];

t.test('S-15 no field of a request is used as the name of a file, a table or a command', async (t) => {
  const server = await startWithAllRoutes(t, { files });
  const caller = new Caller(server, TOKEN);
  const before = treeOf(server.started.folder, { but: OWN });
  const replies: Reply[] = [];
  for (const name of ODD_NAMES) {
    for (const fields of FIELDS) replies.push(await server.chat(saying('Hi', fields(name)), bearer(TOKEN)));
    const encoded = encodeURIComponent(name.toWellFormed());
    for (const { method, path, takesJson } of everyRoute(server, encoded)) {
      if (!path.includes(encoded)) continue; // a route without a name
      if (path.startsWith('/v1/conversations'))
        replies.push(await caller.send(method, path.slice('/v1/conversations'.length), takesJson ? {} : undefined));
      else replies.push(await server.request(method, path, bearer(TOKEN)));
    }
    for (const query of ['user', 'after', 'order', 'limit']) replies.push(await caller.get(`?${query}=${encoded}`));
    const { id } = await caller.create({ items: [{ role: 'user', content: 'Hi' }] });
    replies.push(
      await caller.post('', { id: name, metadata: { [name]: name } }),
      await caller.post('', { agent: name }),
      await caller.post(`/${id}/fork`, { id: name }),
      await caller.post(`/${id}/fork`, { after_item: name }),
      await caller.get(`/${id}/items?after=${encoded}`),
      await caller.get(`/${id}/items/${encoded}`),
      await caller.post(`/${id}/items`, {
        items: [
          { type: 'function_call', id: name, call_id: name, name, arguments: name },
          { type: 'function_call_output', call_id: name, output: name },
        ],
      }),
    );
  }
  for (const { status, text } of replies) {
    if (status !== 200 && (status < 400 || status >= 500)) t.fail(`${status}: ${text}`);
    if (text.includes(SECRET) || text.includes('root:')) t.fail(`a file was read: ${text}`);
  }
  t.ok(replies.filter(({ status }) => status === 200).length > 200, `of ${replies.length} some went well`);
  t.notMatch(JSON.stringify(server.models.requests), SECRET);

  const { data } = (await caller.get(`?user=${encodeURIComponent(`../${FILE_MARKER}`)}`)).body as PageBody<ConversationBody>;
  t.strictSame(
    data.map(({ key }) => key),
    [`../${FILE_MARKER}`],
    'a key is a text like any other',
  );

  t.same(treeOf(server.started.folder, { but: OWN }), before);
  assertNoFile(t, server);
  await server.started.server.stop();
  t.same(treeOf(server.started.folder, { but: OWN }), before);
  t.same(schemaOf(server), await freshSchema(t));
});

async function freshSchema(t: Test): Promise<readonly unknown[]> {
  const server = await startWithAllRoutes(t);
  await server.started.server.stop();
  return schemaOf(server);
}

t.test('S-15 no header is, whatever its bytes', async (t) => {
  const server = await startWithAllRoutes(t, { files });
  const before = treeOf(server.started.folder, { but: OWN });
  const body = JSON.stringify(saying('Hi'));
  const statuses = new Set<number>();
  for (const header of [
    'X-Session-Id',
    'Idempotency-Key',
    'X-Session-Busy',
    'X-Client-Request-Id',
    'X-Request-Id',
    'Traceparent',
  ]) {
    for (const name of ODD_NAMES) {
      const raw = await RawClient.open(server.port);
      const value = Buffer.from(name.replaceAll(/[\r\n]/g, ' ')).toString('latin1');
      raw.send(
        'POST /v1/chat/completions HTTP/1.1',
        'Host: localhost',
        'Connection: close',
        `Authorization: Bearer ${TOKEN}`,
        'Content-Type: application/json',
        `${header}: ${value}`,
        `Content-Length: ${body.length}`,
        '',
        body,
      );
      const reply = replyOf(await raw.ended());
      statuses.add(reply.status);
      t.ok(
        [200, 400, 404].includes(reply.status),
        `${header}: ${encodeURIComponent(name.toWellFormed()).slice(0, 40)}: ${reply.status}`,
      );
      t.notMatch(reply.body, SECRET);
    }
  }
  t.same([...statuses].sort(), [200, 400, 404]);
  t.same(treeOf(server.started.folder, { but: OWN }), before);
  assertNoFile(t, server);
});
