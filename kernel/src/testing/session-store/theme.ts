import type { SessionStore } from '../../contracts/session-store.js';
import type { ManualClock } from '../clock.js';

/** What the cases of one theme are made with. */
export interface Theme {
  /** @param name half a sentence whose subject is the store. @param check is given an empty store. */
  readonly add: (name: string, check: (store: SessionStore, again: Reopen) => Promise<void>) => void;
  /** The stores' own, where it can be moved. */
  readonly clock?: ManualClock | undefined;
  /** Whether a store can be opened again over what it had kept. */
  readonly canReopen: boolean;
}

/** Opens a case's store again. What it gave before must not be used any more. */
export type Reopen = () => Promise<SessionStore>;
