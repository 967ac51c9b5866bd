/**
 * Runs turns against a store in several sessions until the process is killed. Prints `ready` first
 * and then a line `key turn` for each acknowledged commit.
 */
import { writeSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** 2 to 6 messages, some large, so that kills find logs and transactions of various lengths. */
function turn(n) {
  const count = 2 + (n % 5);
  return Array.from({ length: count }, (_, i) => ({
    role: i === 0 ? 'user' : 'assistant',
    content: `turn ${n} message ${i + 1} of ${count} ${'x'.repeat((n + i) % 11 === 0 ? 100_000 : 200)}`,
  }));
}

/** @param life different for each process over the same storage. */
export async function turnsUntilKilled(store, life, keys) {
  writeSync(1, 'ready\n');
  await Promise.all(keys.map((key, lane) => run(store, life, key, lane)));
}

async function run(store, life, key, lane) {
  const id = { project: 'acme', agent: 'helper', key };
  for (let i = 0; ; i++) {
    const { version } = await store.load(id);
    const turnId = `turn_${life}_${key}_${i}`;
    const messages = turn(version + 1);
    await store.begin(id, { turnId, input: messages.slice(0, 1) });
    if ((i + lane) % 3 === 0) await wait((i * 7 + lane) % 5); // the model answers
    if ((i + lane) % 9 === 4) {
      await store.abandon(id, turnId);
    } else {
      await store.commit(id, { turnId, expected: version, messages });
      writeSync(1, `${key} ${version + 1}\n`);
    }
  }
}
