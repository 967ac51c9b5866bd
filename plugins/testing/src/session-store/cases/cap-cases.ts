import assert from 'node:assert/strict';
import type { IdempotencyRecord, SessionId } from '@plugboard/kernel/contracts';
import { OWNER, recordOf, turn } from '../support/assertions.js';
import type { OpenedStore, Suite } from '../support/suite.js';
import { stateLimitCases } from './state-cases.js';

/** Opens a store with a cap. Each cap is optional: leave out what the store has no cap of. */
export interface CappedStore {
  /** At most so many sessions, of all projects together. */
  readonly sessions?: (max: number) => Promise<OpenedStore> | OpenedStore;
  /** At most so many idempotency records, of all projects together. */
  readonly idempotencyRecords?: (max: number) => Promise<OpenedStore> | OpenedStore;
  /** At most so many keys of the state of each entry, instead of `StateFull.LIMIT`. */
  readonly stateKeys?: (max: number) => Promise<OpenedStore> | OpenedStore;
}

const SMALL = 'small';

/** Caps. Beyond one of the whole store, the project with the most loses its oldest. */
export function capCases(suite: Suite, { sessions, idempotencyRecords, stateKeys }: CappedStore): void {
  const { addOwn } = suite;
  if (stateKeys) stateLimitCases(suite, (max) => () => stateKeys(max));
  if (sessions) {
    const name = 'S-42 evicts sessions of the project with the most';
    addOwn(
      name,
      'SessionStore',
      () => sessions(4),
      async (store) => {
        const small: SessionId = { ...OWNER, project: SMALL, key: 'a' };
        await store.create(small, { metadata: {}, messages: turn(1) });
        const large = Array.from({ length: 9 }, (_, n): SessionId => ({ ...OWNER, key: `s${n}` }));
        for (const id of large) await store.create(id, { metadata: {}, messages: turn(1) });
        assert.ok(await store.info(small), 'a project with one session lost it to a project with nine');
        const left = await store.list(OWNER.project, { limit: 100, order: 'asc' });
        assert.ok(left.length <= 3, `${left.length + 1} sessions are stored, and 4 are allowed`);
        assert.ok(
          left.some(({ id }) => id.key === 's8'),
          'the newest session is not stored',
        );
      },
    );
  }
  if (idempotencyRecords) {
    const name = 'S-42 evicts idempotency records of the project with the most';
    addOwn(
      name,
      'IdempotencyStore',
      () => idempotencyRecords(100),
      async ({ idempotency }) => {
        const put = (key: string, project?: string) => idempotency.put(record(key, project));
        const has = async (key: string, project?: string) =>
          (await recordOf(idempotency, record(key, project).key)) !== undefined;
        await put('first', SMALL);
        for (let n = 0; n < 98; n++) await put(`${n}`);
        await idempotency.put({ ...record('98'), result: 'began' });
        await put('98');
        assert.ok(await has('0'), 'a record was evicted before there were 101: one that is replaced counts once');
        await put('99');
        assert.ok(!(await has('0')), '101 records are stored, and 100 are allowed');
        assert.ok((await has('50')) && (await has('99')), 'more than the oldest records were evicted');
        assert.ok(await has('first', SMALL), 'a project with one record lost it to a project with 100');
      },
    );
  }
}

function record(key: string, project = OWNER.project): IdempotencyRecord {
  return { key: { project, route: '/v1/chat/completions', key }, fingerprint: 'f1', result: { text: 'answer' } };
}
