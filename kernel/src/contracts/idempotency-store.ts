/** What a client calls one request, to be able to repeat it. Three values, never joined into one. */
export interface IdempotencyKey {
  /** From the credential only. */
  readonly project: string;
  /** The path that was called: the same key is another one elsewhere. */
  readonly route: string;
  /** The header's value. Data: never a path, never SQL text. */
  readonly key: string;
}

/** What is known of a request that was sent with a key. */
export interface IdempotencyRecord {
  readonly key: IdempotencyKey;
  /** Equal for the same request, and for no other. */
  readonly fingerprint: string;
  /** `began`: tools have begun to run, and how the turn ended nobody has said yet. Otherwise its end, as its transport wrote it down. */
  readonly result: 'began' | { readonly text: string };
}

/**
 * What was answered under idempotency keys. Kept for 24 hours after it was put, and for 100,000 keys at most: one more, and the oldest is
 * forgotten. What came with a session's commit is kept with it or not at all (`TurnCommit`).
 */
export interface IdempotencyStore {
  get(key: IdempotencyKey): Promise<IdempotencyRecord | undefined>;
  /** Puts a record in the place of what stood under its key. Once it is resolved, the record survives a killed process. */
  put(record: IdempotencyRecord): Promise<void>;
}
