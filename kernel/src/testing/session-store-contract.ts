import assert from 'node:assert/strict';
import type { SessionStore } from '../contracts/session-store.js';
import type { ManualClock } from './clock.js';
import { type ContractCase, soon } from './contract.js';
import { apartCases } from './session-store/apart-cases.js';
import { conversationCases } from './session-store/conversation-cases.js';
import { copyCases } from './session-store/copy-cases.js';
import { deleteCases } from './session-store/delete-cases.js';
import { idempotencyCases } from './session-store/idempotency-cases.js';
import { listCases } from './session-store/list-cases.js';
import { parkedCases } from './session-store/parked-cases.js';
import type { Theme } from './session-store/theme.js';
import { turnCases } from './session-store/turn-cases.js';
import { turnPageCases } from './session-store/turn-page-cases.js';

export interface OpenedStore {
  readonly store: SessionStore;
  /** Lets go of what was opened. */
  close?(): Promise<void> | void;
}

export interface SessionStoreContractOptions {
  /** The clock that the stores run on, where they do not run on one of their own: expiry is then pinned down too. */
  readonly clock?: ManualClock;
  /**
   * Lets go of a store, and opens another over what it had kept, as a server does that is started again: what a store must keep beyond its
   * process is then pinned down too. Absent for a store that keeps nothing.
   */
  readonly reopen?: (opened: OpenedStore) => Promise<OpenedStore> | OpenedStore;
}

/**
 * What every session store must keep to (session-store.ts; sessions.md speaks of one suite for all stores).
 *
 * @param open gives an empty store that is ready to work. It is called once for each case, and what it gave is closed after it.
 */
export function sessionStoreContract(
  open: () => Promise<OpenedStore> | OpenedStore,
  { clock, reopen }: SessionStoreContractOptions = {},
): readonly ContractCase[] {
  const cases: ContractCase[] = [];
  const add: Theme['add'] = (name, check) => {
    cases.push({
      name,
      run: async () => {
        let opened = await open();
        const again = async () => {
          opened = (await reopen?.(opened)) ?? opened;
          return opened.store;
        };
        try {
          await soon(name, check(opened.store, again));
        } finally {
          await opened.close?.();
        }
      },
    });
  };

  const theme = { add, clock, canReopen: reopen !== undefined };
  turnCases(theme);
  apartCases(theme);
  conversationCases(theme);
  turnPageCases(theme);
  listCases(theme);
  copyCases(theme);
  deleteCases(theme);
  parkedCases(theme);
  idempotencyCases(theme);
  add('says that it is well', async (store) => {
    assert.deepEqual(await store.health(), { ok: true });
  });
  return cases;
}
