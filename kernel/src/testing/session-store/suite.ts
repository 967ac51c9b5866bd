import type { SessionStore } from '../../contracts/session-store.js';
import type { ManualClock } from '../clock.js';

/** What a group of cases is built with. */
export interface Suite {
  /** Adds a case. @param name what the store does, starting with a verb. @param check receives an empty store. */
  readonly add: (name: string, check: (store: SessionStore, reopen: Reopen) => Promise<void>) => void;
  /** The stores' clock, if the test can move it. */
  readonly clock?: ManualClock | undefined;
  /** Whether a store can be reopened over what it stored. */
  readonly canReopen: boolean;
}

/** Reopens a case's store. The old one must not be used afterwards. */
export type Reopen = () => Promise<SessionStore>;
