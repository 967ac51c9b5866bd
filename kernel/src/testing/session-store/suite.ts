import type { SessionStore } from '../../contracts/session-store.js';
import type { ManualClock } from '../base/clock.js';

/** What a group of cases is built with. */
export interface Suite {
  /**
   * Adds a case.
   *
   * @param name what the store does, starting with a verb.
   * @param check receives an empty store.
   * @param source where the promise is documented, by default `SessionStore`. See `Contract.add`.
   */
  readonly add: (name: string, check: (store: SessionStore, reopen: Reopen) => Promise<void>, source?: string) => void;
  /** The stores' clock, if the test can move it. */
  readonly clock?: ManualClock | undefined;
  /** Whether a store can be reopened over what it stored. */
  readonly canReopen: boolean;
}

/** Reopens a case's store. The old one must not be used afterwards. */
export type Reopen = () => Promise<SessionStore>;
