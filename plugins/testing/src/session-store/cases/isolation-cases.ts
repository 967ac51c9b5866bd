import assert from 'node:assert/strict';
import { assertSeparate, commitTurns, OWNER, SESSION, tryToMutate, turn } from '../support/assertions.js';
import { EVERY_FORM, UNUSUAL_KEYS } from '../support/fixtures.js';
import type { Suite } from '../support/suite.js';

/** Sessions are separate, and no data is shared with callers. */
export function isolationCases({ add }: Suite): void {
  add('separates sessions by project, agent and key', async (store) => {
    await assertSeparate(store, [
      { project: 'acme', agent: 'helper', key: 'k' },
      { project: 'other', agent: 'helper', key: 'k' },
      { project: 'acme', agent: 'billing', key: 'k' },
    ]);
  });

  for (const separator of [':', '/', '|', ',', '-', ' ', '","', '\u001f']) {
    add(`separates sessions whose names contain ${JSON.stringify(separator)}`, async (store) => {
      const [ab, bc] = [`a${separator}b`, `b${separator}c`];
      await assertSeparate(store, [
        { project: ab, agent: 'c', key: 'd' },
        { project: 'a', agent: bc, key: 'd' },
        { project: 'a', agent: 'b', key: `c${separator}d` },
        { project: ab, agent: `c${separator}d`, key: separator },
      ]);
    });
  }

  add('treats keys as data, compared byte by byte', async (store) => {
    await assertSeparate(
      store,
      UNUSUAL_KEYS.map((key) => ({ ...SESSION, key })),
    );
  });

  add('is not affected by later changes to messages it was given', async (store) => {
    const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'before' }] }];
    await store.commit(SESSION, { expected: 0, messages });
    for (const part of messages[0]?.content ?? []) part.text = 'after';
    messages.push({ role: 'user', content: [] });
    assert.deepEqual((await store.load(SESSION)).messages, [{ role: 'user', content: [{ type: 'text', text: 'before' }] }]);
  });

  add('is not affected by changes to messages it returned', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: EVERY_FORM });
    await store.pendingToolCalls.save(OWNER, ['call_1'], EVERY_FORM);
    tryToMutate((await store.load(SESSION)).messages);
    tryToMutate((await store.pendingToolCalls.load(OWNER, 'call_1')) ?? []);
    assert.deepEqual((await store.load(SESSION)).messages, EVERY_FORM);
    assert.deepEqual(await store.pendingToolCalls.load(OWNER, 'call_1'), EVERY_FORM);
  });

  add('does not change a loaded conversation when a turn is added', async (store) => {
    await commitTurns(store, SESSION, 1);
    const before = await store.load(SESSION);
    await store.commit(SESSION, { expected: 1, messages: turn(2) });
    assert.deepEqual(before.messages, turn(1));
    assert.equal(before.version, 1);
  });
}
