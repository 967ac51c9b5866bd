import type { LastUses } from '../files/last-use.js';
import type { TokenRecord } from '../tokens/token-record.js';

/** Makes the records after a change, and its result. */
export type TokenChange<T> = (records: readonly TokenRecord[]) => {
  readonly records: readonly TokenRecord[];
  readonly result: T;
};

/** Where issued tokens are. */
export interface TokenStorage {
  /** Where that is, as in messages: `the tokens file`. */
  readonly name: string;
  /** Whether other servers have the same tokens. */
  readonly isShared: boolean;
  /** A text that changes with the tokens. Costs less than to read them. */
  signature(): Promise<string>;
  /** @throws TokensUnusable */
  read(): Promise<readonly TokenRecord[]>;
  /**
   * Replaces the records by those that `work` returns. Of changes at once, none is lost.
   *
   * @param work may be called again, with what another command has changed meanwhile. The records
   * it was given mean that nothing changes.
   * @throws CommandError, and what `work` throws. Nothing was changed then.
   */
  change<T>(
    work: (records: readonly TokenRecord[]) => { readonly records: readonly TokenRecord[]; readonly result: T },
  ): Promise<T>;
  /** What is lost or damaged counts as never used, because nothing depends on it. */
  lastUses(): Promise<LastUses>;
  /** Adds uses. Later ones, of other servers, stay. */
  addUses(uses: LastUses): Promise<void>;
  /** The time by which tokens expire, in milliseconds since the epoch. */
  now(): number;
}
