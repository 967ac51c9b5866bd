import { createHash } from 'node:crypto';
import type { IdempotencyRecord, Logger, Message } from '@plugboard/kernel';
import { MOST_KEYS } from './memory-idempotency.js';
import type { MemorySession } from './memory-session.js';
import type { Item, Shelf } from './shelf.js';

export interface RoomLimits {
  readonly maxSessions: number;
  readonly maxBytes: number;
}

/** What is kept. All of it shares the bytes, not the number. */
export interface Shelves {
  readonly sessions: Shelf<MemorySession>;
  readonly pendingCalls: Shelf<readonly Message[]>;
  readonly answers: Shelf<IdempotencyRecord>;
  /** The versions of deleted sessions. */
  readonly tombstones: Shelf<number>;
}

/** How much there may be, and what goes where there is more. To evict is to lose here, so each eviction is one line in the log. */
export class Room {
  readonly #limits: RoomLimits;
  readonly #shelves: Shelves;
  readonly #log: Logger;

  constructor(limits: RoomLimits, shelves: Shelves, log: Logger) {
    this.#limits = limits;
    this.#shelves = shelves;
    this.#log = log;
  }

  /** Checked before anything is evicted for it: what can never fit must cost nobody their session. */
  assertFits(bytes: number, what: string): void {
    const { maxBytes } = this.#limits;
    if (bytes <= maxBytes) return;
    throw new Error(
      `${what} would take ${bytes} bytes, and the memory store holds ${maxBytes} in all: raise its maxBytes, or use a store on disk`,
    );
  }

  /** Evicts what was not used for the longest time until the limits hold. */
  make(): void {
    const { maxSessions, maxBytes } = this.#limits;
    const { sessions, pendingCalls, answers, tombstones } = this.#shelves;
    while (sessions.size > maxSessions) this.#evictSession('maxSessions');
    while (pendingCalls.size > maxSessions) this.#evictPendingCall('maxSessions');
    while (answers.size > MOST_KEYS) this.#evictAnswer('100,000 keys');
    while (tombstones.size > maxSessions) tombstones.shift();
    while (sessions.bytes + pendingCalls.bytes + answers.bytes > maxBytes) {
      const session = sessions.oldest()?.usedAt ?? Number.POSITIVE_INFINITY;
      const left = pendingCalls.oldest()?.usedAt ?? Number.POSITIVE_INFINITY;
      const answer = answers.oldest()?.usedAt ?? Number.POSITIVE_INFINITY;
      if (answer <= Math.min(session, left)) this.#evictAnswer('maxBytes');
      else if (session < left) this.#evictSession('maxBytes');
      else this.#evictPendingCall('maxBytes');
    }
  }

  #evictSession(limit: 'maxSessions' | 'maxBytes'): void {
    const item = this.#shelves.sessions.shift();
    if (item) this.logLoss(item, limit);
  }

  #evictPendingCall(limit: 'maxSessions' | 'maxBytes'): void {
    const item = this.#shelves.pendingCalls.shift();
    if (item)
      this.#log.warn(
        { bytes: item.bytes, limit },
        'evicted a pending tool call: a request with its result will be answered without the turn that led to it',
      );
  }

  #evictAnswer(limit: '100,000 keys' | 'maxBytes'): void {
    const item = this.#shelves.answers.shift();
    if (item)
      this.#log.warn(
        { bytes: item.bytes, limit },
        'evicted what is known of a request with an Idempotency-Key: it would be run again if it were repeated',
      );
  }

  /** A session's key may say who talks, so the log gets its hash. */
  logLoss({ value: { id, turnCount }, bytes }: Item<MemorySession>, limit: 'ttl' | 'maxSessions' | 'maxBytes'): void {
    const session_hash = createHash('sha256').update(id.key).digest('hex').slice(0, 12);
    const line = { project: id.project, agent: id.agent, session_hash, turns: turnCount, bytes, limit };
    const message = 'evicted a session: its messages are lost, for they were in memory only';
    if (limit === 'ttl') this.#log.info(line, message);
    else this.#log.warn(line, message);
  }
}
