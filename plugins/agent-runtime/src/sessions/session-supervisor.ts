import type { PluginContext } from '@plugboard/kernel';
import {
  type Account,
  type SessionId,
  type SessionInfo,
  sessionTitle,
  type Target,
  TurnError,
  type TurnEvents,
} from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { RuntimeSettings } from '../config.js';
import { TurnMemory } from '../engine/limits/turn-memory.js';
import type { OpenConversation } from '../engine/turn/conversation.js';
import { TurnRunner } from '../engine/turn/turn-runner.js';
import type { TurnTask } from '../engine/turn/turn-task.js';
import { SessionConversation } from './conversation/session-conversation.js';
import { SessionHistory } from './conversation/session-history.js';
import { InterruptedTurns } from './interrupted-turns.js';
import { LocalActor } from './local-actor.js';
import { ApprovalRecords } from './pending/approval-records.js';
import type { SessionActor } from './session-actor.js';
import { SessionWatch } from './session-watch.js';
import { equalTurn, offerEvents } from './shared/equal-turn.js';
import { SessionLine } from './shared/session-line.js';
import { SharedActor } from './shared-actor.js';
import { isBlocked } from './store/blocked-sessions.js';
import { parentSessionOf } from './store/session-of.js';
import { SessionStorage } from './store/session-storage.js';
import { showElsewhere, watchElsewhere } from './watch-elsewhere.js';

/**
 * An idle session is evicted from memory after this time, in milliseconds. Its next use loads it
 * again.
 */
const HIBERNATE_AFTER = 15 * 60_000;
const SWEEP_EVERY = 60_000;
/**
 * The order of use is precise to this many milliseconds: to change it with every turn costs more.
 */
const ORDER_EVERY = 60_000;
/** Maximum number of sessions in memory. Beyond it, the least recently used idle one is evicted. */
const MAX_ACTORS = 10_000;
/** A session with this many crashes within `CRASH_WINDOW` is quarantined. */
const MAX_CRASHES = 3;
const CRASH_WINDOW = 60_000;
const QUARANTINE = 60_000;
/** With more crashes of all sessions within `CRASH_WINDOW`, the process counts as unhealthy. */
const MAX_TOTAL_CRASHES = 50;

type SessionStatus = 'idle' | 'running' | 'quarantined';

/**
 * Supervises the sessions in use. Each has its own actor, and a crash affects only that session:
 * its cache is dropped, and the next turn starts from the store.
 */
export class SessionSupervisor {
  /** Maximum number of waiting turns per session. */
  #limit: number;
  /**
   * Memory of turns. The conversations between turns may have what is left of it
   * (`SessionHistory.cachedBytes`): the largest are evicted when it is needed (S-37).
   */
  readonly #memory: TurnMemory;
  readonly #context: PluginContext;
  readonly #runner: TurnRunner;
  readonly #storage: SessionStorage;
  readonly #approvals: ApprovalRecords;
  readonly #interrupted: InterruptedTurns;
  /** Least recently used first. */
  readonly #actors = new Map<string, SessionActor>();
  /** Watchers by the names of their sessions. */
  readonly #watches = new Map<string, Set<SessionWatch>>();
  readonly #crashes = new Map<string, number[]>();
  #allCrashes: number[] = [];
  #sweeping = false;

  constructor(
    @inject(CONTEXT) context: PluginContext<RuntimeSettings>,
    @inject(TurnMemory) memory: TurnMemory,
    @inject(TurnRunner) runner: TurnRunner,
    @inject(SessionStorage) storage: SessionStorage,
    @inject(ApprovalRecords) approvals: ApprovalRecords,
    @inject(InterruptedTurns) interrupted: InterruptedTurns,
  ) {
    this.#context = context;
    this.#limit = context.config.limits.queuedPerSession;
    this.#memory = memory;
    this.#memory.budget.onShortage((bytes) => this.#evictLargest(bytes));
    this.#runner = runner;
    this.#storage = storage;
    this.#approvals = approvals;
    this.#interrupted = interrupted;
  }

  reconfigure(config: RuntimeSettings): void {
    this.#limit = config.limits.queuedPerSession;
  }

  /** Whether sessions crash so often that the process counts as unhealthy. */
  get isUnstable(): boolean {
    return recent(this.#allCrashes, this.#context.clock.monotonic()).length > MAX_TOTAL_CRASHES;
  }

  /** @see SessionActor.join */
  join(id: SessionId, fingerprint: string, signal: AbortSignal, account: Account): TurnEvents | undefined {
    return this.#actors.get(nameOf(id))?.join(fingerprint, signal, account);
  }

  /** Queues a turn in its session, or ends it at once with the reason why it is refused. */
  submit(id: SessionId, turn: TurnTask): void {
    const name = nameOf(id);
    const quarantined = this.#quarantine(name);
    if (quarantined) turn.requestEnd(quarantined);
    else this.use(id, name).submit(turn);
    if (this.#watches.size > 0) this.#show(name, turn);
  }

  /**
   * Watches the turns of a session: see `Conversations.watch`.
   * @param targetOf finds the targets of turns at other servers.
   */
  watch(id: SessionId, maxBehind: number, targetOf: (name: string) => Target | undefined): SessionWatch {
    const name = nameOf(id);
    const watches = this.#watches.get(name) ?? new Set();
    const ended = new AbortController();
    const watch = new SessionWatch(this.#turnsOf(name), maxBehind, this.#context, () => {
      ended.abort();
      watches.delete(watch);
      if (watches.size === 0) this.#watches.delete(name);
    });
    this.#watches.set(name, watches.add(watch));
    const { shared } = this.#storage.store;
    if (shared) void watchElsewhere(watch, id, ended.signal, { storage: this.#storage, shared, targetOf });
    return watch;
  }

  /** Shows a turn to those who watch its session, unless it was refused. */
  #show(name: string, turn: TurnTask): void {
    const ahead = this.#turnsOf(name).indexOf(turn);
    if (ahead >= 0) for (const watch of this.#watches.get(name) ?? []) watch.add(turn, ahead);
  }

  #turnsOf(name: string): readonly TurnTask[] {
    return this.#actors.get(name)?.turns ?? [];
  }

  /** The sessions with turns that may not be in the store yet, because the first one runs. */
  begun(project: string): readonly BegunSession[] {
    if (this.#storage.store.shared) return []; // it knows them
    const { clock } = this.#context;
    return [...this.#actors.values()].flatMap(({ history, turns: [turn] }) => {
      const { id, conversation, mayBeNew } = history;
      if (!turn || !mayBeNew || id.project !== project || turn.request.parent) return [];
      const { session, messages } = turn.request;
      const since = Math.floor(clock.now() - (clock.monotonic() - turn.arrivedAt));
      const empty = { createdAt: since, updatedAt: since, turns: 0, bytes: 0, metadata: {} };
      const info = { id, conversation, ...empty, user: session?.user, title: sessionTitle(messages) };
      return [{ info, isStored: () => history.isStored() }];
    });
  }

  statusOf({ id, isRunning }: SessionInfo): SessionStatus {
    const name = nameOf(id);
    if (this.#quarantine(name) || isBlocked(id)) return 'quarantined';
    return (isRunning ?? this.#actors.get(name)?.isBusy) ? 'running' : 'idle';
  }

  /** Ends the turns of one session and waits for their end. */
  async cancel(id: SessionId, reason: TurnError): Promise<void> {
    await (this.#storage.store.shared ? this.use(id) : this.#actors.get(nameOf(id)))?.endTurns(reason);
  }

  /** Waits for the turns of a session's children, which ended with its own: one may be stored. */
  async childrenEnded(id: SessionId): Promise<void> {
    const name = nameOf(id);
    const isChild = ({ request }: TurnTask) => {
      const parent = parentSessionOf(request);
      return parent !== undefined && nameOf(parent) === name;
    };
    const turns = [...this.#actors.values()].flatMap((actor) => actor.turns.filter(isChild));
    await Promise.all(turns.map(({ ended }) => ended));
  }

  /** Returns the session's actor and marks it as used. */
  use(id: SessionId, name = nameOf(id)): SessionActor {
    const actor = this.#actors.get(name) ?? this.#activate(name, id);
    actor.usedAt = this.#context.clock.monotonic();
    if (actor.usedAt - actor.orderedAt >= ORDER_EVERY) {
      actor.orderedAt = actor.usedAt;
      this.#actors.delete(name);
      this.#actors.set(name, actor);
    }
    return actor;
  }

  #activate(name: string, id: SessionId): SessionActor {
    this.#evict();
    const history = new SessionHistory(id, this.#storage, this.#memory);
    const open: OpenConversation = (context) => new SessionConversation(context, history, this.#storage, this.#approvals);
    const { shared } = this.#storage.store;
    const { clock, ids } = this.#context;
    const options = {
      clock,
      ids,
      run: (turn: TurnTask) => this.#runner.run(turn, open),
      queueLimit: () => this.#limit,
      onCrash: () => this.#onCrash(name, id),
    };
    const actor = shared
      ? new SharedActor(history, {
          ...options,
          line: new SessionLine(id, this.#storage, shared),
          recover: (turn) => this.#interrupted.recover(turn),
          equalTurn: (turn, turnId) => equalTurn(turn, turnId, { shared, clock }),
          offer: (turn) => {
            offerEvents(turn, shared, this.#memory.budget);
            showElsewhere(turn, history.conversation, shared, this.#context);
          },
        })
      : new LocalActor(history, options);
    this.#actors.set(name, actor);
    if (!this.#sweeping) this.#sweepLater();
    return actor;
  }

  /** Drops the cache of the session. Waiting turns are ended if the session is quarantined. */
  #onCrash(name: string, id: SessionId): void {
    const now = this.#context.clock.monotonic();
    this.#crashes.set(name, [...recent(this.#crashes.get(name) ?? [], now), now]);
    this.#allCrashes = [...recent(this.#allCrashes, now), now];
    if (this.#allCrashes.length === MAX_TOTAL_CRASHES + 1)
      this.#context.log.error({ event: 'supervisor_overrun', crashes: this.#allCrashes.length }, 'sessions crash repeatedly');
    const actor = this.#actors.get(name);
    actor?.history.release();
    const quarantined = this.#quarantine(name);
    if (!quarantined) return;
    this.#context.log.error({ project: id.project, agent: id.agent }, 'a session crashed repeatedly and is closed for a minute');
    actor?.endWaiting(quarantined);
  }

  #quarantine(name: string): TurnError | undefined {
    const crashes = this.#crashes.get(name);
    const now = this.#context.clock.monotonic();
    const last = crashes?.at(-1);
    if (!crashes || last === undefined) return undefined;
    if (crashes.length >= MAX_CRASHES && now - last < QUARANTINE) {
      return new TurnError('session_quarantined', 'The session failed several times in a row and is closed for a minute.');
    }
    if (now - last >= CRASH_WINDOW) this.#crashes.delete(name);
    return undefined;
  }

  #remove(name: string): void {
    this.#actors.get(name)?.history.release();
    this.#actors.delete(name);
  }

  /** Drops the largest conversations that no turn uses, until so many bytes are free. */
  #evictLargest(bytes: number): void {
    const cached = [...this.#actors.values()].filter(({ history }) => history.cachedBytes > 0);
    cached.sort((a, b) => b.history.cachedBytes - a.history.cachedBytes);
    let left = bytes;
    for (const { history } of cached) {
      if (left <= 0) return;
      left -= history.cachedBytes;
      history.release();
    }
  }

  /** Evicts the least recently used idle session if the limit is reached. */
  #evict(): void {
    if (this.#actors.size < MAX_ACTORS) return;
    for (const [name, actor] of this.#actors) {
      if (actor.isBusy) continue;
      this.#remove(name);
      return;
    }
  }

  #sweepLater(): void {
    this.#sweeping = true;
    this.#context.clock.after(SWEEP_EVERY, () => {
      const now = this.#context.clock.monotonic();
      for (const [name, { isBusy, usedAt, orderedAt }] of this.#actors) {
        if (now - orderedAt < HIBERNATE_AFTER) break;
        if (!isBusy && now - usedAt >= HIBERNATE_AFTER) this.#remove(name);
      }
      for (const [name, crashes] of this.#crashes) if (recent(crashes, now).length === 0) this.#crashes.delete(name);
      this.#sweeping = false;
      if (this.#actors.size > 0 || this.#crashes.size > 0) this.#sweepLater();
    });
  }
}

/** A session whose first turn waits or runs. */
export interface BegunSession {
  readonly info: SessionInfo;
  /** @see SessionHistory.isStored */
  isStored(): Promise<boolean>;
}

function recent(crashes: readonly number[], now: number): number[] {
  return crashes.filter((at) => now - at < CRASH_WINDOW);
}

/** A unique text for the three values. */
function nameOf({ project, agent, key }: SessionId): string {
  return JSON.stringify([project, agent, key]);
}
