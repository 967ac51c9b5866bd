import { createHash } from 'node:crypto';
import type { Logger, Message } from '@plugboard/kernel';
import type { IdempotencyRecord } from '@plugboard/kernel/contracts';
import type { Entry, ExpiringMap } from './expiring-map.js';
import type { FrozenCopy } from './frozen-copy.js';
import { MAX_RECORDS } from './memory-idempotency.js';
import type { MemorySession } from './memory-session.js';
import type { SessionIndex } from './project-index.js';

export interface MemoryLimits {
  readonly maxSessions: number;
  readonly maxBytes: number;
  readonly maxSessionsPerProject: number;
  readonly maxBytesPerProject: number;
  /** Idempotency records, by default as many as the contract of `IdempotencyStore` says. */
  readonly maxRecords?: number;
}

/** The limit that an eviction is due to, by its option. */
type Limit = Exclude<keyof MemoryLimits, 'maxRecords'>;

/** Everything the store holds. All of it shares the byte limit; the number is limited per kind. */
interface StoreContents {
  readonly sessions: ExpiringMap<MemorySession>;
  readonly pendingCalls: ExpiringMap<FrozenCopy<readonly Message[]>>;
  readonly records: ExpiringMap<IdempotencyRecord>;
  /** The versions from which deleted and evicted sessions continue. */
  readonly tombstones: ExpiringMap<number>;
  readonly index: SessionIndex;
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

  /**
   * Throws if something can never fit. Called before a change, so that nothing is evicted in vain.
   */
  assertFits(bytes: number, what: string): void {
    const { maxBytes, maxBytesPerProject } = this.#limits;
    const limit = Math.min(maxBytes, maxBytesPerProject);
    if (bytes <= limit) return;
    const setting = limit === maxBytes ? 'maxBytes' : 'maxBytesPerProject';
    throw new Error(
      `${what} needs ${bytes} bytes, but the memory store may hold only ${limit}: raise ${setting} or use a store on disk`,
    );
  }

  /**
   * Evicts until the limits hold, first those of each project (S-39). Beyond those of the store,
   * the project that holds the most loses its least recently used entry, so that no project can
   * push out another's (S-42). Sessions with a running turn stay, even beyond the limits.
   */
  evict(): void {
    const { maxSessions, maxBytes, maxRecords = MAX_RECORDS } = this.#limits;
    this.#evictFromProjects();
    const { sessions, pendingCalls, records, tombstones } = this.#contents;
    this.#shrink(sessions, maxSessions, (project) => this.#evictSession(project, 'maxSessions'));
    this.#shrink(pendingCalls, maxSessions, (project) => this.#evictPendingCall(project, 'maxSessions'));
    this.#shrink(records, maxRecords, (project) => this.#evictRecord(project, '100,000 keys'));
    while (sessions.bytes + pendingCalls.bytes + records.bytes > maxBytes) {
      const project = this.#largestProject();
      if (project === undefined) break;
      this.#evictOldest(project, 'maxBytes');
    }
    this.#shrink(tombstones, maxSessions, (project) => tombstones.shift(project));
  }

  #evictFromProjects(): void {
    const { maxSessionsPerProject, maxBytesPerProject } = this.#limits;
    const { sessions } = this.#contents;
    for (const [project, count] of [...sessions.owners()]) {
      for (let left = count; left > maxSessionsPerProject && sessions.oldest(project); left--)
        this.#evictSession(project, 'maxSessionsPerProject');
    }
    for (const [project] of [...this.#bytesByProject()].filter(([, bytes]) => bytes > maxBytesPerProject)) {
      while ((this.#bytesByProject().get(project) ?? 0) > maxBytesPerProject && this.#hasEvictable(project))
        this.#evictOldest(project, 'maxBytesPerProject');
    }
  }

  /** Evicts entries of the project with the most until there are at most `max`. */
  #shrink<V>(map: ExpiringMap<V>, max: number, evict: (project: string) => void): void {
    while (map.size > max) {
      const [project] = largest([...map.owners()].filter(([owner]) => map.oldest(owner)).map(([owner, size]) => [owner, size]));
      if (project === undefined) return;
      evict(project);
    }
  }

  /** The project with the most bytes among those that have something to evict. */
  #largestProject(): string | undefined {
    return largest([...this.#bytesByProject()].filter(([owner]) => this.#hasEvictable(owner)))[0];
  }

  #bytesByProject(): ReadonlyMap<string, number> {
    const { sessions, pendingCalls, records } = this.#contents;
    const bytes = new Map<string, number>();
    for (const map of [sessions, pendingCalls, records]) {
      for (const [owner, , owned] of map.owners()) bytes.set(owner, (bytes.get(owner) ?? 0) + owned);
    }
    return bytes;
  }

  #hasEvictable(project: string): boolean {
    const { sessions, pendingCalls, records } = this.#contents;
    return [sessions, pendingCalls, records].some((map) => map.oldest(project) !== undefined);
  }

  #evictOldest(project: string, limit: Limit): void {
    const { sessions, pendingCalls, records } = this.#contents;
    const session = sessions.oldest(project)?.usedAt ?? Number.POSITIVE_INFINITY;
    const call = pendingCalls.oldest(project)?.usedAt ?? Number.POSITIVE_INFINITY;
    const record = records.oldest(project)?.usedAt ?? Number.POSITIVE_INFINITY;
    if (record <= Math.min(session, call)) this.#evictRecord(project, limit);
    else if (session < call) this.#evictSession(project, limit);
    else this.#evictPendingCall(project, limit);
  }

  /**
   * Leaves the version of a lost session behind, so that a new session with its id is not taken for
   * it, and logs the loss. The log contains a hash of the key, which may identify a person.
   */
  loseSession({ value: session, bytes }: Entry<MemorySession>, limit: 'ttl' | Limit): void {
    const { id, turnCount } = session;
    this.#contents.index.delete(session);
    this.#contents.tombstones.set(session.conversation, session.version + 1, 0, id.project);
    const session_hash = createHash('sha256').update(id.key).digest('hex').slice(0, 12);
    const fields = { project: id.project, agent: id.agent, session_hash, turns: turnCount, bytes, limit };
    const message = 'evicted a session: its messages are lost, because they were only in memory';
    if (limit === 'ttl') this.#log.info(fields, message);
    else this.#log.warn(fields, message);
  }

  #evictSession(project: string, limit: Limit): void {
    const entry = this.#contents.sessions.shift(project);
    if (entry) this.loseSession(entry, limit);
  }

  #evictPendingCall(project: string, limit: Limit): void {
    const entry = this.#contents.pendingCalls.shift(project);
    if (entry)
      this.#log.warn(
        { bytes: entry.bytes, limit },
        'evicted a pending tool call: the request with its result will not find the turn it belongs to',
      );
  }

  #evictRecord(project: string, limit: '100,000 keys' | Limit): void {
    const entry = this.#contents.records.shift(project);
    if (entry)
      this.#log.warn({ bytes: entry.bytes, limit }, 'evicted an idempotency record: a retry of its request will run again');
  }
}

/** The pair with the largest number; empty if there is none. */
function largest(pairs: readonly (readonly [project: string, amount: number])[]): readonly [string, number] | readonly [] {
  return pairs.reduce<readonly [string, number] | readonly []>(
    (found, pair) => (found[1] !== undefined && found[1] >= pair[1] ? found : pair),
    [],
  );
}
