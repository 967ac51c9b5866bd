import { DatabaseSync } from 'node:sqlite';
import type { Message } from '@plugboard/kernel';
import t from 'tap';
import { ANNA, loaded, OWNER, openStore, session, turn } from './open-store.js';

/** Changes the file while no store has it open. */
function change(path: string, sql: string, ...values: string[]): void {
  const database = new DatabaseSync(path);
  database.prepare(sql).run(...values);
  database.close();
}

const BAD_MESSAGES: readonly [body: string, problem: RegExp][] = [
  ['', /is not JSON/],
  ['{"role":"user","content":"cut o', /is not JSON/],
  ['null', /is not a message/],
  ['[]', /is not a message/],
  ['"user"', /is not a message/],
  ['{}', /has an unknown role/],
  ['{"role":"constructor","content":"x"}', /has an unknown role/],
  ['{"role":{"toString":1},"content":"x"}', /has an unknown role/],
  ['{"role":"user"}', /has no content/],
  ['{"role":"user","content":null}', /has an invalid content/],
  ['{"role":"user","content":[1]}', /has an invalid content/],
  ['{"role":"user","content":[{"text":"no type"}]}', /has an invalid content/],
  ['{"role":"user","content":"x","name":7}', /has an invalid name/],
  ['{"role":"tool","content":"x"}', /has no tool_call_id/],
  ['{"role":"function","content":"x"}', /has no name/],
  ['{"role":"assistant","content":null,"tool_calls":{}}', /has an invalid tool_calls/],
  ['{"role":"user","content":"x","__proto__":{"role":"system"}}', /has a field that messages of the role user do not have/],
  ['{"role":"user","content":[{"type":"text","text":"x","__proto__":{}}]}', /has an invalid content/],
  ['{"role":"assistant","content":null,"function_call":{"name":"f","a":[{"__proto__":{}}]}}', /has an invalid function_call/],
  ['{"role":"user","content":"x","lc":1,"type":"constructor","id":["os","system"]}', /has a field that messages/],
  ['{"role":"user","content":"x","$type":"System.Diagnostics.Process"}', /has a field that messages/],
  ['{"role":"user","content":"x","toString":1}', /has a field that messages/],
  [
    `{"role":"user","content":[{"type":"text","more":${'['.repeat(50_000)}${']'.repeat(50_000)}}]}`,
    /is nested more than 1000 levels deep/,
  ],
];

t.test('S-19 a row that is not a message fails its session only, and the error names the row', async (t) => {
  const folder = t.testdir();
  const first = openStore(folder);
  await first.store.commit(ANNA, { expected: 0, messages: turn(1) });
  await first.store.commit(session('ben'), { expected: 0, messages: turn(1) });
  first.store.stop();
  for (const [body, problem] of BAD_MESSAGES) {
    change(first.path, 'UPDATE message SET body = ? WHERE session = 1 AND place = 1', body);
    const { store } = openStore(folder);
    await t.rejects(store.load(ANNA), { code: 'bad_row', message: problem }, body);
    await t.rejects(store.load(ANNA), { message: /sessions\.db: message 1 of turn 1 of session 1 .+ Only the session/ });
    t.same(await loaded(store, session('ben')), { version: 1, messages: turn(1) });
    t.same(await store.health(), { ok: true });
    store.stop();
  }
  t.equal(({} as { role?: string }).role, undefined);
});

t.test('S-19 refuses to write a message that could not be read back', async (t) => {
  const { store, close } = openStore(t.testdir());
  t.teardown(close);
  for (const [body, problem] of BAD_MESSAGES.slice(2)) {
    const messages = [...turn(1), JSON.parse(body) as Message];
    await t.rejects(store.commit(ANNA, { expected: 0, messages }), { code: 'bad_message', message: problem }, body);
    await t.rejects(store.pendingToolCalls.save(OWNER, ['call_1'], messages), {
      code: 'bad_message',
      message: /^message 2 of the turn/,
    });
  }
  t.equal(await store.version(ANNA), 0);
});

t.test('logs an interrupted turn whose input cannot be read and recovers the others', async (t) => {
  const folder = t.testdir();
  const first = openStore(folder);
  for (const n of [1, 2, 3]) await first.store.begin(session(`s${n}`), { turnId: `turn_${n}`, input: turn(n) });
  first.store.stop();
  change(first.path, "UPDATE turn SET input = ? WHERE turn_id = 'turn_1'", '{}');
  change(first.path, "UPDATE turn SET input = ? WHERE turn_id = 'turn_2'", '[{"role":"unknown"}]');
  const { store, logs, close } = openStore(folder);
  t.teardown(close);
  t.same(await store.recover(), [{ id: session('s3'), turnId: 'turn_3', input: turn(3) }]);
  t.match(logs, [
    {
      level: 'error',
      msg: 'an interrupted turn cannot be read and is skipped',
      err: { message: /the input of turn row 1 is not a list of messages/ },
    },
    { level: 'error', err: { message: /the input of turn row 2 contains a message that has an unknown role/ } },
  ]);
  t.same(await store.recover(), []);
});

t.test('fails to load pending tool calls that cannot be read', async (t) => {
  const folder = t.testdir();
  const first = openStore(folder);
  await first.store.pendingToolCalls.save(OWNER, ['call_1'], turn(1));
  first.store.stop();
  change(first.path, 'UPDATE pending_tool_call SET messages = ?', '[');
  const { store, close } = openStore(folder);
  t.teardown(close);
  await t.rejects(store.pendingToolCalls.load(OWNER, 'call_1'), { code: 'bad_row', message: /pending tool call 1 is not JSON/ });
  await store.pendingToolCalls.save(OWNER, ['call_1'], turn(2));
  t.same(await store.pendingToolCalls.load(OWNER, 'call_1'), turn(2));
});
