import assert from 'node:assert/strict';
import { assertApart, commitTurns, OWNER, SESSION, tryToSpoil, turn } from './assertions.js';
import { EVERY_FORM, ODD_KEYS } from './fixtures.js';
import type { Suite } from './suite.js';

/** Sessions are told apart by three values, and nothing is shared with callers. */
export function isolationCases({ add }: Suite): void {
  add('holds the same key of another project or another agent for another session', async (store) => {
    await assertApart(store, [
      { project: 'acme', agent: 'helper', key: 'k' },
      { project: 'other', agent: 'helper', key: 'k' },
      { project: 'acme', agent: 'billing', key: 'k' },
    ]);
  });

  for (const separator of [':', '/', '|', ',', '-', ' ', '","', '\u001f']) {
    add(`does not mix up sessions whose names hold ${JSON.stringify(separator)}`, async (store) => {
      const [ab, bc] = [`a${separator}b`, `b${separator}c`];
      await assertApart(store, [
        { project: ab, agent: 'c', key: 'd' },
        { project: 'a', agent: bc, key: 'd' },
        { project: 'a', agent: 'b', key: `c${separator}d` },
        { project: ab, agent: `c${separator}d`, key: separator },
      ]);
    });
  }

  add('takes keys for data: neither paths nor SQL nor patterns, and compared byte for byte', async (store) => {
    await assertApart(
      store,
      ODD_KEYS.map((key) => ({ ...SESSION, key })),
    );
  });

  add('does not change with the messages that it was given', async (store) => {
    const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'before' }] }];
    await store.commit(SESSION, { expected: 0, messages });
    for (const part of messages[0]?.content ?? []) part.text = 'after';
    messages.push({ role: 'user', content: [] });
    assert.deepEqual((await store.load(SESSION)).messages, [{ role: 'user', content: [{ type: 'text', text: 'before' }] }]);
  });

  add('does not change with the messages that it gave', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: EVERY_FORM });
    await store.pendingToolCalls.save(OWNER, ['call_1'], EVERY_FORM);
    tryToSpoil((await store.load(SESSION)).messages);
    tryToSpoil((await store.pendingToolCalls.load(OWNER, 'call_1')) ?? []);
    assert.deepEqual((await store.load(SESSION)).messages, EVERY_FORM);
    assert.deepEqual(await store.pendingToolCalls.load(OWNER, 'call_1'), EVERY_FORM);
  });

  add('leaves what was loaded as it was when another turn is added', async (store) => {
    await commitTurns(store, SESSION, 1);
    const before = await store.load(SESSION);
    await store.commit(SESSION, { expected: 1, messages: turn(2) });
    assert.deepEqual(before.messages, turn(1));
    assert.equal(before.version, 1);
  });
}
