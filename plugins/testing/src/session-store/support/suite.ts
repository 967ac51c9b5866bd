import type { SessionStore } from '@plugboard/kernel';
import type { ManualClock } from '../../base/clock.js';

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
  /** Adds a case that opens its store itself. */
  readonly addOwn: (name: string, source: string, open: Open, check: (store: SessionStore) => Promise<void>) => void;
  /** Adds a case without a store. */
  readonly addAlone: (name: string, source: string, check: () => Promise<void>) => void;
  /** The stores' clock, if the test can move it. */
  readonly clock?: ManualClock | undefined;
  /** Whether a store can be reopened over what it stored. */
  readonly canReopen: boolean;
}

/** A store that was opened for one test, and how to close it. @experimental */
export interface OpenedStore {
  readonly store: SessionStore;
  /** Releases what was opened. */
  close?(): Promise<void> | void;
}

type Open = () => Promise<OpenedStore> | OpenedStore;

/** Opens a store with settings. */
export type OpenStore<S> = (settings: S) => Open;

/** Reopens a case's store. The old one must not be used afterwards. */
type Reopen = () => Promise<SessionStore>;
