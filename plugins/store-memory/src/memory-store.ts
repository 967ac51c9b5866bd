import { createHash } from 'node:crypto';
import {
  CLOCK,
  type Clock,
  CONFIG,
  type IdempotencyRecord,
  type InterruptedTurn,
  inject,
  injectable,
  LOGGER,
  type Logger,
  type Message,
  type ParkOwner,
  parseDuration,
  parseSize,
  type SessionId,
  type SessionStore,
  type StoredSession,
  type TurnCommit,
  VersionConflict,
} from '@plugboard/kernel';
import type { MemoryConfig } from './config.js';
import { MemoryIdempotency, MOST_KEYS, sizeOf } from './memory-idempotency.js';
import { type Item, Shelf } from './shelf.js';

const HOUR = 60 * 60_000;

interface Session {
  readonly id: SessionId;
  version: number;
  /** Grows with each turn. The messages themselves are frozen, so that handing them out needs no copy of them. */
  readonly messages: Message[];
}

/**
 * Keeps sessions as long as the process lives and there is room. The one store in which to evict is to lose, so each eviction is one line
 * in the log. Every method works in one go between two ticks: two commits at the same time are one after the other.
 */
@injectable()
export class MemoryStore implements SessionStore {
  readonly idempotency: MemoryIdempotency;
  readonly #maxSessions: number;
  readonly #maxBytes: number;
  readonly #log: Logger;
  readonly #sessions: Shelf<Session>;
  /** By owner and call. */
  readonly #parked: Shelf<readonly Message[]>;

  constructor(@inject(CONFIG) config: MemoryConfig, @inject(CLOCK) clock: Clock, @inject(LOGGER) log: Logger) {
    this.#maxSessions = config.maxSessions;
    this.#maxBytes = parseSize(config.maxBytes);
    this.#log = log;
    this.#sessions = new Shelf(parseDuration(config.ttl), clock, (item) => this.#logLoss(item, 'ttl'));
    this.#parked = new Shelf(HOUR, clock, () => {});
    this.idempotency = new MemoryIdempotency(clock, (record) => this.#putAnswer(record));
  }

  async load(id: SessionId): Promise<StoredSession> {
    const key = sessionKey(id);
    const item = this.#sessions.get(key);
    if (!item) return { version: 0, messages: [] };
    this.#sessions.put(key, item.value, item.bytes); // a turn begins: this session is not the one to evict while it runs
    return { version: item.value.version, messages: item.value.messages.slice() };
  }

  async version(id: SessionId): Promise<number> {
    return this.#sessions.get(sessionKey(id))?.value.version ?? 0;
  }

  /** What begins here and never ends is gone with the process: there is nothing to write down, nor to recover. */
  async begin(): Promise<void> {}

  async abandon(): Promise<void> {}

  async recover(): Promise<readonly InterruptedTurn[]> {
    return [];
  }

  async commit(id: SessionId, { expected, messages, idempotency }: TurnCommit): Promise<void> {
    const key = sessionKey(id);
    const before = this.#sessions.get(key);
    const session = before?.value ?? { id: { ...id }, version: 0, messages: [] };
    if (session.version !== expected) throw new VersionConflict(expected, session.version);

    const added = copyOf(messages);
    const bytes = (before?.bytes ?? 0) + added.bytes;
    this.#assertFits(bytes + sizeOf(idempotency), 'the session');
    session.version += 1;
    for (const message of added.messages) session.messages.push(message);
    this.#sessions.put(key, session, bytes);
    if (idempotency) this.idempotency.keep(idempotency);
    this.#makeRoom();
  }

  async park(owner: ParkOwner, keys: readonly string[], messages: readonly Message[]): Promise<void> {
    const parked = copyOf(messages);
    this.#assertFits(parked.bytes, 'what a turn leaves for its next request');
    const share = Math.ceil(parked.bytes / keys.length); // the keys have one copy among them
    for (const key of keys) this.#parked.put(parkKey(owner, key), parked.messages, share);
    this.#makeRoom();
  }

  async parked(owner: ParkOwner, key: string): Promise<readonly Message[] | undefined> {
    return this.#parked.get(parkKey(owner, key))?.value;
  }

  async health(): Promise<{ readonly ok: boolean }> {
    return { ok: true };
  }

  /** Forgets everything. */
  stop(): void {
    this.#sessions.clear();
    this.#parked.clear();
    this.idempotency.shelf.clear();
  }

  #putAnswer(record: IdempotencyRecord): void {
    this.#assertFits(sizeOf(record), 'the answer to a request with an Idempotency-Key');
    this.idempotency.keep(record);
    this.#makeRoom();
  }

  /** Checked before anything is evicted for it: what can never fit must cost nobody their session. */
  #assertFits(bytes: number, what: string): void {
    if (bytes <= this.#maxBytes) return;
    throw new Error(
      `${what} would take ${bytes} bytes, and the memory store holds ${this.#maxBytes} in all: raise its maxBytes, or use a store on disk`,
    );
  }

  /** Evicts what was not used for the longest time until the limits hold. All that is kept shares the bytes, not the number. */
  #makeRoom(): void {
    while (this.#sessions.size > this.#maxSessions) this.#evictSession('maxSessions');
    while (this.#parked.size > this.#maxSessions) this.#evictParked('maxSessions');
    while (this.idempotency.shelf.size > MOST_KEYS) this.#evictAnswer('100,000 keys');
    while (this.#sessions.bytes + this.#parked.bytes + this.idempotency.shelf.bytes > this.#maxBytes) {
      const session = this.#sessions.oldest()?.usedAt ?? Number.POSITIVE_INFINITY;
      const parked = this.#parked.oldest()?.usedAt ?? Number.POSITIVE_INFINITY;
      const answer = this.idempotency.shelf.oldest()?.usedAt ?? Number.POSITIVE_INFINITY;
      if (answer <= Math.min(session, parked)) this.#evictAnswer('maxBytes');
      else if (session < parked) this.#evictSession('maxBytes');
      else this.#evictParked('maxBytes');
    }
  }

  #evictSession(limit: 'maxSessions' | 'maxBytes'): void {
    const item = this.#sessions.shift();
    if (item) this.#logLoss(item, limit);
  }

  #evictParked(limit: 'maxSessions' | 'maxBytes'): void {
    const item = this.#parked.shift();
    if (item)
      this.#log.warn(
        { bytes: item.bytes, limit },
        'evicted the parked messages of a tool call: a request that brings its result will not find them',
      );
  }

  #evictAnswer(limit: '100,000 keys' | 'maxBytes'): void {
    const item = this.idempotency.shelf.shift();
    if (item)
      this.#log.warn(
        { bytes: item.bytes, limit },
        'evicted what is known of a request with an Idempotency-Key: it would be run again if it were repeated',
      );
  }

  /** A session's key may say who talks, so the log gets its hash. */
  #logLoss({ value: { id, version }, bytes }: Item<Session>, limit: 'ttl' | 'maxSessions' | 'maxBytes'): void {
    const session_hash = createHash('sha256').update(id.key).digest('hex').slice(0, 12);
    const line = { project: id.project, agent: id.agent, session_hash, turns: version, bytes, limit };
    const message = 'evicted a session: its messages are lost, for they were in memory only';
    if (limit === 'ttl') this.#log.info(line, message);
    else this.#log.warn(line, message);
  }
}

/** One text for three values that no three others have: a separator alone could stand in a key too. */
function sessionKey({ project, agent, key }: SessionId): string {
  return JSON.stringify([project, agent, key]);
}

function parkKey({ project, agent }: ParkOwner, key: string): string {
  return JSON.stringify([project, agent, key]);
}

/** Messages that nobody else holds and nobody can change, and their size as JSON. */
function copyOf(messages: readonly Message[]): { readonly messages: readonly Message[]; readonly bytes: number } {
  const json = JSON.stringify(messages);
  return { messages: JSON.parse(json, (_, value) => Object.freeze(value)), bytes: Buffer.byteLength(json) };
}
