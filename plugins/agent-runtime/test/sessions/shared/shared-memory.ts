import type { Clock, SessionStore } from '@plugboard/kernel';
import {
  conversationId,
  type InterruptedTurn,
  LeaseEnded,
  type SessionId,
  type SharedStore,
  type TurnBegin,
} from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import { memoryStore } from '../../harness.js';

type Arrival = Parameters<SharedStore['acquire']>[1];

interface Row {
  readonly id: SessionId;
  readonly server: SharedServer;
  readonly arrival: Arrival;
  readonly lease: AbortController;
  input: TurnBegin['input'] | undefined;
  runs: boolean;
  /** Settles the wait of `acquire`. */
  readonly turn: PromiseWithResolvers<void>;
}

interface Offer {
  readonly name: string;
  readonly server: SharedServer;
  readonly topic: string;
  readonly open: (signal: AbortSignal) => AsyncIterable<string>;
}

/** A store in memory that several runtimes of one test share, as servers share a database. */
export class SharedMemory {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly rows: Row[] = [];
  readonly offers = new Map<string, Offer>();
  readonly changed = new EventTarget();
  /** Those who read topics: each sees a new offer at once. */
  readonly readers = new Set<(offer: Offer) => void>();
  /** How often a topic was read, and how many texts were. */
  reads = 0;
  names = 0;
  texts = 0;
  hidesOffers = false;
  /** As if a turn came between a look at its session and its arrival. */
  hidesRunning = false;
  /** Offers that are opened now, and how many ever were. */
  opened = 0;
  everOpened = 0;
  /** Changes what is offered. */
  agentNames = (text: string) => text;
  #interrupted: InterruptedTurn[] = [];
  /** The turns that servers got as interrupted, and that have not ended. */
  readonly handled = new Map<string, { readonly turn: InterruptedTurn; readonly server: SharedServer }>();

  constructor(clock: Clock = new ManualClock()) {
    this.clock = clock;
    this.store = memoryStore(clock);
  }

  server(): SharedServer {
    return new SharedServer(this);
  }

  rowsOf(id: SessionId): Row[] {
    const name = conversationId(id);
    return this.rows.filter((row) => conversationId(row.id) === name);
  }

  /** A row leaves the line, and the next one's time comes. */
  remove(row: Row): void {
    const index = this.rows.indexOf(row);
    if (index < 0) return;
    this.rows.splice(index, 1);
    this.wake();
  }

  /** The readers find all offers that they have not seen. */
  showAll(): void {
    for (const see of this.readers) for (const offer of this.offers.values()) see(offer);
  }

  wake(): void {
    for (const row of this.rows) if (this.rowsOf(row.id)[0] === row) row.turn.resolve();
    this.changed.dispatchEvent(new Event('change'));
  }

  /** Removes the rows of a dead server, and keeps what it had begun. */
  bury(server: SharedServer): void {
    for (const row of this.rows.filter((one) => one.server === server)) {
      if (row.input) this.#interrupted.push({ id: row.id, turnId: row.arrival.turnId, input: row.input });
      this.remove(row);
    }
    for (const [turnId, { turn, server: by }] of this.handled) {
      if (by === server && this.handled.delete(turnId)) this.#interrupted.push(turn);
    }
    for (const [name, offer] of this.offers) if (offer.server === server) this.offers.delete(name);
    this.changed.dispatchEvent(new Event('change'));
  }

  takeInterrupted(server: SharedServer, id?: SessionId): InterruptedTurn[] {
    const name = id && conversationId(id);
    const taken = this.#interrupted.filter((turn) => !name || conversationId(turn.id) === name);
    this.#interrupted = this.#interrupted.filter((turn) => !taken.includes(turn));
    for (const turn of taken) this.handled.set(turn.turnId, { turn, server });
    return taken;
  }

  async change(signal?: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.changed.addEventListener('change', () => resolve(), { once: true });
    signal?.addEventListener('abort', () => resolve(), { once: true });
    if (!signal?.aborted) await promise;
  }
}

/** One server's view of it. */
export class SharedServer {
  readonly store: SessionStore;
  /** Why it does not work, in place of an answer. */
  failure: Error | undefined;
  readFails = false;
  /** Called before a turn ends. */
  beforeEnd: (() => void) | undefined;
  readonly #memory: SharedMemory;
  isHeld = true;
  /** Aborts when it dies. */
  readonly #death = new AbortController();

  constructor(memory: SharedMemory) {
    this.#memory = memory;
    const shared = this.#shared();
    const inner = memory.store;
    const own: Partial<SessionStore> = {
      shared,
      begin: async (_, { turnId, input }) => {
        const row = memory.rows.find(({ arrival }) => arrival.turnId === turnId);
        if (!row?.runs || row.server !== this || !this.isHeld) throw new LeaseEnded('expired');
        row.input = input;
      },
      commit: async (id, turn) => {
        this.#ends();
        const row = memory.rows.find(({ arrival }) => arrival.turnId === turn.turnId);
        const server = row?.runs ? row.server : memory.handled.get(turn.turnId ?? '')?.server;
        if (turn.turnId !== undefined && server !== this) throw new LeaseEnded('expired');
        await inner.commit(id, turn);
        memory.handled.delete(turn.turnId ?? '');
        if (row) memory.remove(row);
      },
      abandon: async (_, turnId) => {
        this.#ends();
        const row = memory.rows.find(({ arrival }) => arrival.turnId === turnId);
        memory.handled.delete(turnId);
        if (row) memory.remove(row);
      },
      recover: async () => memory.takeInterrupted(this),
      info: async (id) => this.#info(id, await inner.info(id)),
      find: async (project, conversation) => {
        const stored = await inner.find(project, conversation);
        const row = memory.rows.find(({ id }) => id.project === project && conversationId(id) === conversation);
        const id = stored?.id ?? row?.id;
        return id && this.#info(id, stored);
      },
      list: async (project, page) => {
        const stored = await inner.list(project, page);
        const begun = memory.rows.filter(({ id }) => id.project === project && !stored.some((one) => one.id.key === id.key));
        const infos = await Promise.all([...begun, ...stored].map(async ({ id }) => this.#info(id, await inner.info(id))));
        return infos.filter((info) => info !== undefined);
      },
      health: async () => (this.failure ? { ok: false, reason: this.failure.message } : { ok: true }),
    };
    this.store = new Proxy(inner, {
      get: (target, name: keyof SessionStore) => {
        const value = name in own ? own[name] : target[name];
        if (typeof value !== 'function' || name === 'health') return value;
        return (...args: never[]) => (this.failure ? Promise.reject(this.failure) : Reflect.apply(value, target, args));
      },
    });
  }

  #ends(): void {
    this.beforeEnd?.();
    if (this.failure) throw this.failure;
  }

  get death(): AbortSignal {
    return this.#death.signal;
  }

  #info(id: SessionId, stored: Awaited<ReturnType<SessionStore['info']>>) {
    const [row] = this.#memory.rowsOf(id);
    const isRunning = row !== undefined && !this.#memory.hidesRunning;
    if (stored || !row) return stored && { ...stored, isRunning };
    const { title, user } = row.arrival;
    const times = { createdAt: 0, updatedAt: 0 };
    return { id, conversation: conversationId(id), ...times, turns: 0, bytes: 0, metadata: {}, title, user, isRunning };
  }

  /** Its process ends without a word. */
  die(): void {
    this.failure = new Error('this server is dead');
    this.#lose();
  }

  #lose(): void {
    this.isHeld = false;
    this.#death.abort();
    this.#memory.bury(this);
  }

  /** It was silent for longer than its lease: others go on, and then it wakes. */
  loseLease(): void {
    const rows = this.#memory.rows.filter((row) => row.server === this);
    this.#lose();
    for (const { lease, turn } of rows) {
      lease.abort(new LeaseEnded('expired'));
      turn.reject(new LeaseEnded('expired'));
    }
  }

  #shared(): SharedStore {
    const memory = this.#memory;
    const call = <T>(work: () => Promise<T>) => (this.failure ? Promise.reject(this.failure) : work());
    return {
      acquire: (id, arrival, signal) => call(() => this.#acquire(id, arrival, signal)),
      endTurns: (id, why, signal, turnId) =>
        call(async () => {
          const rows = memory.rowsOf(id).filter((row) => turnId === undefined || row.arrival.turnId === turnId);
          for (const row of rows.toReversed()) {
            row.turn.reject(new LeaseEnded(why));
            row.lease.abort(new LeaseEnded(why));
          }
          while (rows.some((row) => memory.rows.includes(row))) await memory.change(signal);
        }),
      findTurn: (project, turnId) =>
        call(async () => memory.rows.find((row) => row.arrival.turnId === turnId && row.id.project === project)?.id),
      offer: (topic, open) => {
        const name = `${topic}#${++memory.names}`;
        const offer = { name, server: this, topic, open };
        memory.offers.set(name, offer);
        if (!memory.hidesOffers) for (const see of memory.readers) see(offer);
        return () => {
          memory.offers.delete(name);
          memory.changed.dispatchEvent(new Event('change'));
        };
      },
      read: (topic, signal) => this.#read(topic, signal),
      count: async (uses) => uses.map(() => 0),
      hold: async (_, signal) => ({ signal, release: async () => {} }),
      now: () => memory.clock.now(),
    };
  }

  async #acquire(id: SessionId, arrival: Arrival, signal: AbortSignal): ReturnType<SharedStore['acquire']> {
    const memory = this.#memory;
    signal.throwIfAborted();
    const line = memory.rowsOf(id);
    const same = line.find((row) => arrival.fingerprint !== undefined && row.arrival.fingerprint === arrival.fingerprint);
    if (same) return { kind: 'same', turnId: same.arrival.turnId };
    if (line.length > arrival.maxAhead) return { kind: 'busy' };
    const turn = Promise.withResolvers<void>();
    const row: Row = { id, server: this, arrival, lease: new AbortController(), input: undefined, runs: false, turn };
    memory.rows.push(row);
    const onAbort = () => turn.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    memory.wake();
    try {
      await turn.promise;
    } catch (error) {
      memory.remove(row);
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
    row.runs = true;
    const isHeld = () => this.isHeld;
    const [interrupted] = memory.takeInterrupted(this, id);
    const version = await memory.store.version(id);
    const lease = {
      version,
      interrupted,
      get isHeld() {
        return !row.lease.signal.aborted && isHeld();
      },
      signal: row.lease.signal,
    };
    return { kind: 'lease', lease };
  }

  async *#read(topic: string, signal: AbortSignal): ReturnType<SharedStore['read']> {
    const memory = this.#memory;
    memory.reads++;
    memory.changed.dispatchEvent(new Event('change'));
    const items: { offer: string; text?: string }[] = [];
    const wake = () => memory.changed.dispatchEvent(new Event('change'));
    const pump = async ({ name, open, server }: Offer) => {
      memory.opened++;
      memory.everOpened++;
      const texts = open(AbortSignal.any([signal, server.death]));
      try {
        for await (const text of texts) {
          if (!server.isHeld) break;
          items.push({ offer: name, text: memory.agentNames(text) });
          wake();
        }
      } catch {}
      memory.opened--;
      items.push({ offer: name });
      wake();
    };
    const see = (offer: Offer) => {
      if (offer.topic !== topic || offer.server === this || signal.aborted) return;
      void pump(offer);
    };
    memory.readers.add(see);
    if (!memory.hidesOffers) for (const offer of memory.offers.values()) see(offer);
    while (!signal.aborted) {
      if (this.readFails) throw new Error('no database');
      const item = items.shift();
      if (item) memory.texts++;
      if (item) yield item;
      else await memory.change(signal);
    }
    memory.readers.delete(see);
  }
}
