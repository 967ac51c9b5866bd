import assert from 'node:assert/strict';
import type { ManualClock } from '../base/clock.js';
import { Contract, type DeclareTest } from '../contract/contract.js';
import { waitFor } from '../contract/wait.js';
import { approvalCases } from './cases/approval-cases.js';
import { type CappedStore, capCases } from './cases/cap-cases.js';
import { childCases } from './cases/child-cases.js';
import { conversationCases } from './cases/conversation-cases.js';
import { deleteCases } from './cases/delete-cases.js';
import { documentCases } from './cases/document-cases.js';
import { forkCases } from './cases/fork-cases.js';
import { idempotencyCases } from './cases/idempotency-cases.js';
import { isolationCases } from './cases/isolation-cases.js';
import { type KilledStore, killCases } from './cases/kill-cases.js';
import { lineCases } from './cases/line-cases.js';
import { listCases } from './cases/list-cases.js';
import { pendingToolCallCases } from './cases/pending-tool-call-cases.js';
import { quotaCases, type StoreQuotas } from './cases/quota-cases.js';
import { registrationCase } from './cases/registration-case.js';
import { sharedCases } from './cases/shared-cases.js';
import { stateCases } from './cases/state-cases.js';
import { turnCases } from './cases/turn-cases.js';
import { turnPageCases } from './cases/turn-page-cases.js';
import { assertMembers } from './members.js';
import type { AddShared } from './support/shared-suite.js';
import type { OpenedStore, Suite } from './support/suite.js';

/** How to open the store that is tested. @experimental */
export interface SessionStoreContractOptions {
  /** Returns an empty store that is ready for use. Called and closed once per case. */
  readonly open: () => Promise<OpenedStore> | OpenedStore;
  /** The clock the stores use, if the test can move it. Adds the cases about expiry. */
  readonly clock?: ManualClock;
  /**
   * Closes a store and opens another over what it stored, like a server that restarts. Adds the
   * cases about persistence. Omit it for a store that keeps nothing.
   */
  readonly reopen?: (opened: OpenedStore) => Promise<OpenedStore> | OpenedStore;
  /**
   * Starts a process that writes to a store until the suite kills it. Adds the cases about
   * durability. Omit it for a store that keeps nothing. The process is a few lines:
   *
   * ```js
   * import { writeUntilKilled } from '@plugboard/testing';
   * const store = new MyStore(process.argv[2]);
   * await store.start();
   * await writeUntilKilled(store);
   * ```
   */
  readonly kill?: () => Promise<KilledStore> | KilledStore;
  /** Opens an empty store that limits what one project stores. Adds the cases about quotas. */
  readonly openLimited?: (quotas: StoreQuotas) => Promise<OpenedStore> | OpenedStore;
  /** Opens an empty store with a cap, of projects or entries. Adds cases per cap (S-42). */
  readonly openCapped?: CappedStore;
  /**
   * Opens two stores over one empty database, as two servers do, with real clocks. Adds the cases
   * about `SharedStore`.
   */
  readonly openTwo?: () => Promise<readonly [OpenedStore, OpenedStore]>;
  /**
   * Registers the plugin of the store, for example with `testContext`, with options that keep
   * everything in this folder. Adds the case about registration.
   */
  readonly register?: (folder: string) => unknown;
}

/** Milliseconds that a case may take: a database on a busy machine is slow. */
const CASE_LIMIT = 60_000;

/** Declares the tests of a `SessionStore`. The first one names missing methods. @experimental */
export function sessionStoreContract(test: DeclareTest, options: SessionStoreContractOptions): void {
  const { open, clock, reopen, kill, openLimited, openCapped = {}, openTwo, register } = options;
  const contract = new Contract('A session store', test);
  const add: Suite['add'] = (name, check, source = 'SessionStore') => {
    contract.add(name, source, async () => {
      let opened = await open();
      const reopenStore = async () => {
        opened = (await reopen?.(opened)) ?? opened;
        return opened.store;
      };
      try {
        assertMembers(opened.store);
        await waitFor(name, check(opened.store, reopenStore), CASE_LIMIT);
      } finally {
        await opened.close?.();
      }
    });
  };

  const addAlone: Suite['addAlone'] = (name, source, check) =>
    contract.add(name, source, () => waitFor(name, check(), CASE_LIMIT));
  const addOwn: Suite['addOwn'] = (name, source, openOwn, check) =>
    addAlone(name, source, async () => {
      const opened = await openOwn();
      try {
        await check(opened.store);
      } finally {
        await opened.close?.();
      }
    });

  add('has every method of its six interfaces', async () => {}); // asserted before each case
  add('reports that it works', async (store) => {
    const { ok, reason } = await store.health();
    assert.equal(ok, true, `health() reports that the store does not work: ${reason ?? 'without a reason'}`);
  });
  const suite = { add, addOwn, addAlone, clock, canReopen: reopen !== undefined };
  turnCases(suite);
  isolationCases(suite);
  conversationCases(suite);
  turnPageCases(suite);
  listCases(suite);
  forkCases(suite);
  deleteCases(suite);
  childCases(suite);
  documentCases(suite);
  approvalCases(suite);
  pendingToolCallCases(suite);
  idempotencyCases(suite);
  stateCases(suite);
  if (kill) killCases(suite, kill);
  if (openLimited) quotaCases(suite, (quotas) => () => openLimited(quotas));
  capCases(suite, openCapped);
  if (register) registrationCase(suite, register);
  if (openTwo) {
    const addShared: AddShared = (name, check) =>
      contract.add(name, 'SharedStore', async () => {
        const [one, two] = await openTwo();
        try {
          await waitFor(
            name,
            check(one.store, two.store, async () => one.close?.()),
            CASE_LIMIT,
          );
        } finally {
          await Promise.all([one.close?.(), two.close?.()]);
        }
      });
    lineCases(addShared);
    sharedCases(addShared);
  }
}
