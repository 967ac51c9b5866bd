import type { Clock, Logger, SessionId, SessionStore } from '@plugboard/kernel';
import { type AgentEvents, TurnError } from '@plugboard/kernel';
import { rejected, SessionActor, type SessionTurn } from './session-actor.js';
import { SessionHistory } from './session-history.js';

/** A session that nobody uses for this long leaves the memory, in milliseconds; it is loaded again when somebody does. */
const HIBERNATE_AFTER = 15 * 60_000;
const SWEEP_EVERY = 60_000;
/** So many sessions are in memory at the most; beyond, those go that were not used for the longest time. */
const MAX_ACTORS = 10_000;
/** A session that crashes so often within this time is closed for a while. */
const MAX_CRASHES = 3;
const CRASH_WINDOW = 60_000;
const QUARANTINE = 60_000;
/** So many crashes of all sessions together within the same time, and this process is not well. */
const MAX_TOTAL_CRASHES = 50;

export type SessionStatus = 'idle' | 'running' | 'quarantined';

interface Active {
  readonly actor: SessionActor;
  usedAt: number;
}

/**
 * Looks after the sessions: each has an actor of its own while it is in use, and one that crashes takes no other along. Whatever goes wrong in one, its actor is thrown away, with all
 * that it knew, and the next turn begins from what is kept.
 */
export class SessionSupervisor {
  readonly #limit: number;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** In the order of their last use. */
  readonly #active = new Map<string, Active>();
  readonly #crashes = new Map<string, number[]>();
  #allCrashes: number[] = [];
  #sweeping = false;

  /** @param limit how many turns may wait in one session. */
  constructor(limit: number, clock: Clock, log: Logger) {
    this.#limit = limit;
    this.#clock = clock;
    this.#log = log;
  }

  /** How many sessions are in memory. */
  get size(): number {
    return this.#active.size;
  }

  /** Whether sessions crash so often that this process should be given no more. */
  get isUnstable(): boolean {
    return recent(this.#allCrashes, this.#clock.monotonic()).length > MAX_TOTAL_CRASHES;
  }

  /** @param signal the caller's. */
  submit(id: SessionId, store: SessionStore, turn: SessionTurn, signal: AbortSignal): AgentEvents {
    const name = nameOf(id);
    const quarantined = this.#quarantine(name);
    if (quarantined) return rejected(turn, quarantined);
    return this.#use(name, id, store).submit(turn, signal);
  }

  statusOf(id: SessionId): SessionStatus {
    const name = nameOf(id);
    if (this.#quarantine(name)) return 'quarantined';
    return this.#active.get(name)?.actor.busy ? 'running' : 'idle';
  }

  /** @see SessionActor.whileIdle */
  async whileIdle<T>(id: SessionId, store: SessionStore, work: (history: SessionHistory) => Promise<T>): Promise<T> {
    return this.#use(nameOf(id), id, store).whileIdle(work);
  }

  /** @see SessionActor.clear */
  async clear<T>(id: SessionId, store: SessionStore, reason: TurnError, work: () => Promise<T>): Promise<T> {
    return this.#use(nameOf(id), id, store).clear(reason, work);
  }

  /** Ends the turns of one session, and waits for them. */
  async cancel(id: SessionId, reason: TurnError): Promise<void> {
    await this.#active.get(nameOf(id))?.actor.end(reason);
  }

  /** Ends all turns, and waits for them. */
  async end(reason: TurnError): Promise<void> {
    await Promise.all([...this.#active.values()].map(({ actor }) => actor.end(reason)));
  }

  /** The session's actor, which was now used last of all. */
  #use(name: string, id: SessionId, store: SessionStore): SessionActor {
    const active = this.#active.get(name) ?? this.#activate(name, id, store);
    this.#active.delete(name);
    this.#active.set(name, active);
    active.usedAt = this.#clock.monotonic();
    return active.actor;
  }

  #activate(name: string, id: SessionId, store: SessionStore): Active {
    this.#evict();
    const actor = new SessionActor(new SessionHistory(id, store), this.#limit, this.#clock, () => this.#onCrash(name, id, store));
    const active = { actor, usedAt: this.#clock.monotonic() };
    this.#active.set(name, active);
    if (!this.#sweeping) this.#sweepLater();
    return active;
  }

  /** What waited goes on in a new actor, unless the session is closed for a while. */
  #onCrash(name: string, id: SessionId, store: SessionStore): void {
    const now = this.#clock.monotonic();
    this.#crashes.set(name, [...recent(this.#crashes.get(name) ?? [], now), now]);
    this.#allCrashes = [...recent(this.#allCrashes, now), now];
    if (this.#allCrashes.length === MAX_TOTAL_CRASHES + 1)
      this.#log.error({ crashes: this.#allCrashes.length }, 'supervisor_overrun: sessions keep crashing');
    const crashed = this.#active.get(name)?.actor;
    this.#active.delete(name);
    const quarantined = this.#quarantine(name);
    if (quarantined) {
      this.#log.error({ project: id.project, agent: id.agent }, 'a session crashed again and again, and is closed for a minute');
      crashed?.refuseWaiting(quarantined);
    } else if (crashed?.busy) crashed.handOver(this.#activate(name, id, store).actor);
  }

  #quarantine(name: string): TurnError | undefined {
    const crashes = this.#crashes.get(name);
    const now = this.#clock.monotonic();
    const last = crashes?.at(-1);
    if (!crashes || last === undefined) return undefined;
    if (crashes.length >= MAX_CRASHES && now - last < QUARANTINE) {
      return new TurnError('session_quarantined', 'The session failed several times in a row and is closed for a minute.');
    }
    if (now - last >= CRASH_WINDOW) this.#crashes.delete(name);
    return undefined;
  }

  /** Makes room for one more. Sessions in use stay. */
  #evict(): void {
    if (this.#active.size < MAX_ACTORS) return;
    for (const [name, { actor }] of this.#active) {
      if (actor.busy) continue;
      this.#active.delete(name);
      return;
    }
  }

  #sweepLater(): void {
    this.#sweeping = true;
    this.#clock.after(SWEEP_EVERY, () => {
      const now = this.#clock.monotonic();
      for (const [name, { actor, usedAt }] of this.#active) {
        if (now - usedAt < HIBERNATE_AFTER) break;
        if (!actor.busy) this.#active.delete(name);
      }
      for (const [name, crashes] of this.#crashes) if (recent(crashes, now).length === 0) this.#crashes.delete(name);
      this.#sweeping = false;
      if (this.#active.size > 0 || this.#crashes.size > 0) this.#sweepLater();
    });
  }
}

function recent(crashes: readonly number[], now: number): number[] {
  return crashes.filter((at) => now - at < CRASH_WINDOW);
}

/** One text for a session's three values, which no three others have. */
function nameOf({ project, agent, key }: SessionId): string {
  return JSON.stringify([project, agent, key]);
}
