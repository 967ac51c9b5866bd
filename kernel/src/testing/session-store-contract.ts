import assert from 'node:assert/strict';
import type { SessionStore } from '../contracts/session-store.js';
import type { ManualClock } from './clock.js';
import { type ContractCase, soon } from './contract.js';
import { conversationCases } from './session-store/conversation-cases.js';
import { deleteCases } from './session-store/delete-cases.js';
import { documentCases } from './session-store/document-cases.js';
import { forkCases } from './session-store/fork-cases.js';
import { idempotencyCases } from './session-store/idempotency-cases.js';
import { isolationCases } from './session-store/isolation-cases.js';
import { listCases } from './session-store/list-cases.js';
import { assertMembers } from './session-store/members.js';
import { pendingToolCallCases } from './session-store/pending-tool-call-cases.js';
import type { Suite } from './session-store/suite.js';
import { turnCases } from './session-store/turn-cases.js';
import { turnPageCases } from './session-store/turn-page-cases.js';

export interface OpenedStore {
  readonly store: SessionStore;
  /** Releases what was opened. */
  close?(): Promise<void> | void;
}

export interface SessionStoreContractOptions {
  /** The clock the stores use, if the test can move it. Adds the cases about expiry. */
  readonly clock?: ManualClock;
  /**
   * Closes a store and opens another over what it stored, like a server that restarts. Adds the cases about persistence. Omit it for a
   * store that keeps nothing.
   */
  readonly reopen?: (opened: OpenedStore) => Promise<OpenedStore> | OpenedStore;
}

/**
 * The behaviour that every session store must have (`SessionStore`). The first case names the methods that a store lacks.
 *
 * @param open returns an empty store that is ready for use. Called once per case; its result is closed after the case.
 */
export function sessionStoreContract(
  open: () => Promise<OpenedStore> | OpenedStore,
  { clock, reopen }: SessionStoreContractOptions = {},
): readonly ContractCase[] {
  const cases: ContractCase[] = [];
  const add: Suite['add'] = (name, check) => {
    cases.push({
      name,
      run: async () => {
        let opened = await open();
        const reopenStore = async () => {
          opened = (await reopen?.(opened)) ?? opened;
          return opened.store;
        };
        try {
          assertMembers(opened.store);
          await soon(name, check(opened.store, reopenStore));
        } finally {
          await opened.close?.();
        }
      },
    });
  };

  add('has every method of its four interfaces', async () => {}); // asserted before each case
  add('reports that it works', async (store) => {
    assert.deepEqual(await store.health(), { ok: true });
  });
  const suite = { add, clock, canReopen: reopen !== undefined };
  turnCases(suite);
  isolationCases(suite);
  conversationCases(suite);
  turnPageCases(suite);
  listCases(suite);
  forkCases(suite);
  deleteCases(suite);
  documentCases(suite);
  pendingToolCallCases(suite);
  idempotencyCases(suite);
  return cases;
}
