import { createHash } from 'node:crypto';
import type { IdempotencyRecord, Logger, Message } from '@plugboard/kernel';
import type { Entry, ExpiringMap } from './expiring-map.js';
import { MAX_RECORDS } from './memory-idempotency.js';
import type { MemorySession } from './memory-session.js';

export interface MemoryLimits {
  readonly maxSessions: number;
  readonly maxBytes: number;
}

/** Everything the store holds. All of it shares the byte limit; the number is limited per kind. */
export interface StoreContents {
  readonly sessions: ExpiringMap<MemorySession>;
  readonly pendingCalls: ExpiringMap<readonly Message[]>;
  readonly records: ExpiringMap<IdempotencyRecord>;
  /** The versions from which deleted and evicted sessions continue. */
  readonly tombstones: ExpiringMap<number>;
}

/** Applies the store's limits. What it evicts is lost, so each eviction is logged. */
export class MemoryBudget {
  readonly #limits: MemoryLimits;
  readonly #contents: StoreContents;
  readonly #log: Logger;

  constructor(limits: MemoryLimits, contents: StoreContents, log: Logger) {
    this.#limits = limits;
    this.#contents = contents;
    this.#log = log;
  }

  /** Throws if something can never fit. Called before a change, so that nothing is evicted in vain. */
  assertFits(bytes: number, what: string): void {
    const { maxBytes } = this.#limits;
    if (bytes <= maxBytes) return;
    throw new Error(
      `${what} needs ${bytes} bytes, but the memory store may hold only ${maxBytes}: raise maxBytes or use a store on disk`,
    );
  }

  /** Evicts the least recently used entries until the limits hold. Sessions with a running turn stay, even beyond the limits. */
  evict(): void {
    const { maxSessions, maxBytes } = this.#limits;
    const { sessions, pendingCalls, records, tombstones } = this.#contents;
    while (sessions.size > maxSessions && sessions.oldest()) this.#evictSession('maxSessions');
    while (pendingCalls.size > maxSessions) this.#evictPendingCall('maxSessions');
    while (records.size > MAX_RECORDS) this.#evictRecord('100,000 keys');
    while (sessions.bytes + pendingCalls.bytes + records.bytes > maxBytes) {
      const session = sessions.oldest()?.usedAt ?? Number.POSITIVE_INFINITY;
      const call = pendingCalls.oldest()?.usedAt ?? Number.POSITIVE_INFINITY;
      const record = records.oldest()?.usedAt ?? Number.POSITIVE_INFINITY;
      if (Math.min(session, call, record) === Number.POSITIVE_INFINITY) break;
      if (record <= Math.min(session, call)) this.#evictRecord('maxBytes');
      else if (session < call) this.#evictSession('maxBytes');
      else this.#evictPendingCall('maxBytes');
    }
    while (tombstones.size > maxSessions) tombstones.shift();
  }

  /**
   * Leaves the version of a lost session behind, so that a new session with its id is not taken for it, and logs the loss. The log contains
   * a hash of the key, which may identify a person.
   */
  loseSession({ value: session, bytes }: Entry<MemorySession>, limit: 'ttl' | 'maxSessions' | 'maxBytes'): void {
    const { id, turnCount } = session;
    this.#contents.tombstones.set(session.conversation, session.version + 1, 0);
    const session_hash = createHash('sha256').update(id.key).digest('hex').slice(0, 12);
    const fields = { project: id.project, agent: id.agent, session_hash, turns: turnCount, bytes, limit };
    const message = 'evicted a session: its messages are lost, because they were only in memory';
    if (limit === 'ttl') this.#log.info(fields, message);
    else this.#log.warn(fields, message);
  }

  #evictSession(limit: 'maxSessions' | 'maxBytes'): void {
    const entry = this.#contents.sessions.shift();
    if (entry) this.loseSession(entry, limit);
  }

  #evictPendingCall(limit: 'maxSessions' | 'maxBytes'): void {
    const entry = this.#contents.pendingCalls.shift();
    if (entry)
      this.#log.warn(
        { bytes: entry.bytes, limit },
        'evicted a pending tool call: the request with its result will not find the turn it belongs to',
      );
  }

  #evictRecord(limit: '100,000 keys' | 'maxBytes'): void {
    const entry = this.#contents.records.shift();
    if (entry)
      this.#log.warn({ bytes: entry.bytes, limit }, 'evicted an idempotency record: a retry of its request will run again');
  }
}
