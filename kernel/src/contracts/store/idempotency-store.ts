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

/**
 * Answers to requests with an idempotency key. A record is kept for 24 hours after it was put. A
 * store keeps at most 100,000 records; beyond that it drops the oldest of the project with the most
 * (S-42). A record passed to a session's `commit` is stored together with the turn, or not at all
 * (`TurnCommit`).
 *
 * @experimental
 */
export interface IdempotencyStore {
  /** @param reserve called with the answer's size before it is read. What it throws goes on. */
  get(key: IdempotencyKey, reserve?: (bytes: number) => void): Promise<IdempotencyRecord | undefined>;
  /** Stores a record, in place of an earlier one. Once resolved, it survives a killed process. */
  put(record: IdempotencyRecord): Promise<void>;
}
