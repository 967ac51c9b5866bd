import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { SessionStore } from '@plugboard/kernel';
import { assertLoaded, recordOf, SESSION, turn } from '../support/assertions.js';
import type { OpenedStore, Suite } from '../support/suite.js';

/** A store in a separate process, which is to be killed. @experimental */
export interface KilledStore {
  /** A process that passes a store over new storage to `writeUntilKilled`, its output a pipe. */
  readonly process: ChildProcess;
  /** Opens a store over what the killed process left. */
  open(): Promise<OpenedStore> | OpenedStore;
}

/** The turn at which the process is killed: the earlier ones are to be found whole. */
const LAST = 3;

/** Durability: what a store acknowledged before its process was killed with SIGKILL. */
export function killCases({ addAlone }: Suite, start: () => Promise<KilledStore> | KilledStore): void {
  addAlone(
    'keeps acknowledged turns, with their idempotency records, when its process is killed',
    'ConversationStore 2',
    async () => {
      const { acknowledged, opened } = await killAfter(await start(), `commit ${LAST}`);
      try {
        await assertTurns(opened.store, acknowledged);
      } finally {
        await opened.close?.();
      }
    },
  );

  addAlone('recovers a turn whose process was killed after `begin`', 'ConversationStore 1', async () => {
    const { acknowledged, opened } = await killAfter(await start(), `begin ${LAST}`);
    try {
      const version = await assertTurns(opened.store, acknowledged);
      const began = acknowledged.filter((line) => line.startsWith('begin ')).length;
      const recovered = (await opened.store.recover()).map(({ turnId }) => turnId);
      const expected = began > version ? [`turn_${began}`] : [];
      assert.deepEqual(recovered, expected, `${began} turns began, and ${version} were committed`);
    } finally {
      await opened.close?.();
    }
  });
}

/**
 * Writes turns to a store until the process is killed. For the process that the option `kill` of
 * `sessionStoreContract` starts.
 *
 * @param store empty. Prints a line to standard output for each write that it acknowledged.
 * @experimental
 */
export async function writeUntilKilled(store: SessionStore): Promise<never> {
  for (let n = 1; ; n++) {
    await store.begin(SESSION, { turnId: `turn_${n}`, input: turn(n).slice(0, 1) });
    writeSync(1, `begin ${n}\n`);
    await wait(20); // a model would answer now
    await store.commit(SESSION, { turnId: `turn_${n}`, expected: n - 1, messages: turn(n), idempotency: answerOf(n) });
    writeSync(1, `commit ${n}\n`);
  }
}

function answerOf(n: number) {
  const key = { project: SESSION.project, route: '/v1/chat/completions', key: `key ${n}` };
  return { key, fingerprint: `${n}`, result: { text: `answer ${n}` } };
}

/** Kills the process after it printed a line, and opens what it left. */
async function killAfter({ process, open }: KilledStore, line: string) {
  let output = '';
  const closed = once(process, 'close');
  if (!process.stdout) throw new Error('the standard output of the process is not a pipe');
  process.stdout.on('data', (data) => {
    output += data;
    if (output.split('\n').slice(0, -1).includes(line)) process.kill('SIGKILL');
  });
  const [code, signal] = await closed;
  assert.equal(signal, 'SIGKILL', `the process ended with code ${code} before it printed "${line}"`);
  return { acknowledged: output.split('\n').slice(0, -1), opened: await open() };
}

/**
 * Asserts that all acknowledged turns are there, whole and in order, each with its record, and at
 * most one more.
 *
 * @returns the version.
 */
async function assertTurns(store: SessionStore, acknowledged: readonly string[]): Promise<number> {
  const committed = acknowledged.filter((line) => line.startsWith('commit ')).length;
  const version = await store.version(SESSION);
  assert.ok(version === committed || version === committed + 1, `${committed} turns were acknowledged, ${version} are stored`);
  const turns = Array.from({ length: version }, (_, i) => turn(i + 1));
  await assertLoaded(store, SESSION, { version, messages: turns.flat() });
  for (let n = 1; n <= version + 1; n++) {
    const record = answerOf(n);
    const expected = n <= version ? record : undefined;
    assert.deepEqual(await recordOf(store.idempotency, record.key), expected, `the record of turn ${n} of ${version}`);
  }
  return version;
}
