/**
 * Identifies a request by the `Idempotency-Key` its client sent. Three separate values, never
 * joined into one string.
 *
 * @experimental
 */
export interface IdempotencyKey {
  /** From the credential only. */
  readonly project: string;
  /** The path of the request. The same key on another path is another request. */
  readonly route: string;
  /** The header's value. Data: never part of a path or of SQL text. */
  readonly key: string;
}

/** The state of a request with an idempotency key. @experimental */
export interface IdempotencyRecord {
  readonly key: IdempotencyKey;
  /** A hash of the request: equal for retries of the same request only. */
  readonly fingerprint: string;
  /** The answer, encoded by the transport. `began`: tools have run, the outcome is unknown. */
  readonly result: 'began' | { readonly text: string };
}

/** A request that has claimed its key and has not ended, on this server or another. */
interface RunningRequest extends Pick<IdempotencyRecord, 'key' | 'fingerprint'> {
  readonly result: 'running';
}

/**
 * Requests with an idempotency key. Each runs once, however often it is sent.
 *
 * 1. A request claims its key. Of several at once, on any server, one gets it.
 * 2. Before its first tool runs, it puts `began`.
 * 3. Its answer ends the claim: `put` of a text, or the `commit` of its turn, which stores the
 *    record together with the turn, or not at all (`TurnCommit`).
 * 4. `release` ends a claim without an answer. The key is free again, unless tools had begun.
 * 5. So end the claims of a server that has died.
 *
 * A record is kept for 24 hours after it was put. A store keeps at most 100,000 records; beyond
 * that it drops the oldest of the project with the most (S-42). A claim is never dropped.
 *
 * @experimental
 */
export interface IdempotencyStore {
  /**
   * Claims a key for this server, unless it has a record or another request runs with it.
   *
   * @param reserve called with the answer's size before it is read. What it throws goes on.
   * @returns what has the key; undefined if it is claimed.
   */
  claim(
    key: IdempotencyKey,
    fingerprint: string,
    reserve?: (bytes: number) => void,
  ): Promise<IdempotencyRecord | RunningRequest | undefined>;
  /**
   * Stores the record of a key that this server has claimed. Once resolved, it survives a killed
   * process.
   * @throws LeaseEnded if another server may have the key: this one was silent for too long.
   */
  put(record: IdempotencyRecord): Promise<void>;
  /** Ends a claim without an answer. Does nothing if it has ended. */
  release(key: IdempotencyKey): Promise<void>;
}
