import {
  conversationId,
  type IdempotencyKey,
  type InterruptedTurn,
  LeaseEnded,
  type SessionId,
  type SessionInfo,
  type SharedStore,
  type TurnCommit,
} from '@plugboard/kernel/contracts';
import type { ManualClock } from '../../src/index.js';
import { type PlainSession, PlainStore, StoredData } from './plain-store.js';

export type Arrival = Parameters<SharedStore['acquire']>[1];
type EndReason = Parameters<SharedStore['endTurns']>[1];
type Open = Parameters<SharedStore['offer']>[1];

/** A turn in the line of its session, or a caller in that of a name to hold. */
export interface Place {
  readonly line: string;
  readonly server: PlainSharedStore;
  readonly ended: AbortController;
  readonly turn?: { readonly id: SessionId; readonly arrival: Arrival };
}

/** The texts of an offer, from when its first reader came until its last one leaves. */
interface Opening {
  readonly texts: string[];
  readonly reading: AbortController;
  readers: number;
  isOver: boolean;
}

interface Offer {
  readonly name: string;
  readonly topic: string;
  readonly server: PlainSharedStore;
  readonly open: Open;
  opening: Opening | undefined;
}

/** What all servers share. */
export class SharedData extends StoredData {
  readonly places: Place[] = [];
  /** Of dead servers. */
  readonly interrupted = new Map<string, InterruptedTurn>();
  readonly claims = new Map<string, string>();
  readonly offers = new Map<string, Offer>();
  readonly rates = new Map<string, { readonly requests: number; readonly at: number }>();
  offered = 0;
}

/** The least that keeps the contract of `SharedStore`. It polls at each turn of the event loop. */
export class PlainSharedStore extends PlainStore {
  override readonly claims: Map<string, string>;
  /** The keys that this server has claimed. */
  readonly claimed = new Set<string>();
  isStopped = false;
  readonly shared: SharedStore = {
    acquire: (...arrival) => this.acquire(...arrival),
    endTurns: (...request) => this.endTurns(...request),
    findTurn: async (project, turnId) => {
      const turn = this.placeOf(turnId)?.turn;
      return turn?.id.project === project ? turn.id : undefined;
    },
    offer: (topic, open) => this.offer(topic, open),
    read: (topic, signal) => this.read(topic, signal),
    count: async (uses) => uses.map((use) => this.count(use)),
    hold: (name, signal) => this.hold(name, signal),
    now: () => this.now(),
  };

  constructor(
    clock: ManualClock,
    override readonly kept: SharedData,
  ) {
    super(clock, kept);
    this.claims = kept.claims;
  }

  /** The places of a line, in order: the first one has its turn. */
  placesOf(line: string): readonly Place[] {
    return this.kept.places.filter((place) => place.line === line);
  }

  placeOf(turnId: string | undefined): Place | undefined {
    return this.kept.places.find(({ turn }) => turn && turn.arrival.turnId === turnId);
  }

  isFirst(place: Place): boolean {
    return this.placesOf(place.line)[0] === place;
  }

  leave(place: Place | undefined): void {
    const index = place ? this.kept.places.indexOf(place) : -1;
    if (index >= 0) this.kept.places.splice(index, 1);
  }

  /** Goes to the end of a line, and waits for its beginning. */
  async queue(line: string, signal: AbortSignal, turn?: Place['turn']): Promise<Place> {
    const place: Place = { line, server: this, ended: new AbortController(), ...(turn && { turn }) };
    this.kept.places.push(place);
    try {
      await this.until(() => this.isFirst(place), AbortSignal.any([signal, place.ended.signal]));
      return place;
    } catch (error) {
      this.leave(place);
      throw error;
    }
  }

  async until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    for (signal.throwIfAborted(); !holds(); signal.throwIfAborted()) await this.tick();
  }

  /** A server that has stopped does nothing more. */
  tick(): Promise<void> {
    return new Promise((resolve) => {
      if (!this.isStopped) setImmediate(resolve);
    });
  }

  async acquire(id: SessionId, arrival: Arrival, signal: AbortSignal): ReturnType<SharedStore['acquire']> {
    signal.throwIfAborted();
    const ahead = this.placesOf(conversationId(id));
    const same = this.equalTurn(ahead, arrival);
    if (same !== undefined) return { kind: 'same', turnId: same };
    if (ahead.length > arrival.maxAhead) return { kind: 'busy' };
    const { ended } = await this.queue(conversationId(id), signal, { id: { ...id }, arrival });
    const [interrupted] = this.takeInterrupted(id);
    const isHeld = () => !ended.signal.aborted;
    const lease = {
      version: this.versionOf(id),
      interrupted,
      get isHeld() {
        return isHeld();
      },
      signal: ended.signal,
    };
    return { kind: 'lease', lease };
  }

  equalTurn(ahead: readonly Place[], { fingerprint }: Arrival): string | undefined {
    return ahead.find(({ turn }) => fingerprint !== undefined && turn?.arrival.fingerprint === fingerprint)?.turn?.arrival.turnId;
  }

  async endTurns(id: SessionId, why: EndReason, signal: AbortSignal, turnId?: string): Promise<void> {
    const ending = this.placesOf(conversationId(id)).filter(
      ({ turn }) => turnId === undefined || turn?.arrival.turnId === turnId,
    );
    for (const { ended } of ending) ended.abort(new LeaseEnded(why));
    await this.until(() => !ending.some((place) => this.kept.places.includes(place)), signal);
  }

  override async commit(id: SessionId, turn: TurnCommit): Promise<void> {
    try {
      await super.commit(id, turn);
    } finally {
      this.leave(this.placeOf(turn.turnId));
    }
  }

  override async abandon(id: SessionId, turnId: string): Promise<void> {
    await super.abandon(id, turnId);
    this.leave(this.placeOf(turnId));
  }

  override async recover(): Promise<readonly InterruptedTurn[]> {
    return this.takeInterrupted();
  }

  takeInterrupted(id?: SessionId): readonly InterruptedTurn[] {
    const taken = [...this.kept.interrupted.values()].filter((turn) => !id || this.keyOf(turn.id) === this.keyOf(id));
    for (const { turnId } of taken) this.kept.interrupted.delete(turnId);
    return taken;
  }

  /** Turns in line, work between turns aside. */
  running(): readonly Place[] {
    return this.kept.places.filter(({ turn }) => turn?.arrival.title !== undefined);
  }

  override known(): readonly PlainSession[] {
    const now = this.now();
    const pending = this.running().flatMap(({ turn }) => {
      if (!turn || this.sessions.has(this.keyOf(turn.id))) return [];
      const { user, title } = turn.arrival;
      const empty = { base: 0, metadata: {}, turns: [], records: new Map(), summary: undefined, parent: undefined };
      return [{ ...empty, id: turn.id, createdAt: now, updatedAt: now, user, title }];
    });
    return [...super.known(), ...pending];
  }

  override infoOf(session: PlainSession): SessionInfo {
    const isRunning = this.running().some(({ line }) => line === conversationId(session.id));
    return { ...super.infoOf(session), isRunning };
  }

  override claim(...request: Parameters<PlainStore['claim']>): ReturnType<PlainStore['claim']> {
    const found = super.claim(...request);
    if (!found) this.claimed.add(this.answerKeyOf(request[0]));
    return found;
  }

  override release(key: IdempotencyKey): void {
    if (this.claimed.delete(this.answerKeyOf(key))) super.release(key);
  }

  offer(topic: string, open: Open): () => void {
    const name = `offer_${++this.kept.offered}`;
    this.kept.offers.set(name, { name, topic, server: this, open, opening: undefined });
    return () => void this.kept.offers.delete(name);
  }

  async *read(topic: string, signal: AbortSignal): ReturnType<SharedStore['read']> {
    const seen = new Map<Offer, { readonly opening: Opening; next: number; isRead: boolean }>();
    try {
      for (; !signal.aborted; await this.tick()) {
        for (const offer of this.kept.offers.values()) {
          if (offer.topic !== topic || offer.server === this || seen.has(offer)) continue;
          seen.set(offer, { opening: this.opened(offer), next: 0, isRead: false });
        }
        for (const [{ name }, reader] of seen) {
          const { opening } = reader;
          while (reader.next < opening.texts.length) yield { offer: name, text: opening.texts[reader.next++] ?? '' };
          if (opening.isOver && !reader.isRead) yield this.endOf(name);
          reader.isRead = opening.isOver;
        }
      }
    } finally {
      for (const [offer, { opening }] of seen) this.close(offer, opening);
    }
  }

  endOf(offer: string): { readonly offer: string; readonly text?: string } {
    return { offer };
  }

  /** Opens an offer for a reader, or lets it read with the others. */
  opened(offer: Offer): Opening {
    const opening = offer.opening ?? { texts: [], reading: new AbortController(), readers: 0, isOver: false };
    if (opening.readers++ === 0) void this.pump(offer, opening);
    offer.opening = opening;
    return opening;
  }

  async pump(offer: Offer, opening: Opening): Promise<void> {
    for await (const text of offer.open(opening.reading.signal)) if (!opening.isOver) opening.texts.push(text);
    opening.isOver = true;
  }

  close(offer: Offer, opening: Opening): void {
    if (--opening.readers > 0) return;
    opening.reading.abort();
    offer.opening = undefined;
  }

  count({ name, perMinute, requests }: Parameters<SharedStore['count']>[0][number]): number {
    const at = this.clock.monotonic();
    const before = this.kept.rates.get(name) ?? { requests: 0, at };
    const drained = ((at - before.at) * perMinute) / 60_000;
    const lacking = Math.max(0, before.requests - drained) + requests;
    this.kept.rates.set(name, { requests: lacking, at });
    return lacking;
  }

  async hold(name: string, signal: AbortSignal): ReturnType<SharedStore['hold']> {
    const place = await this.queue(`hold ${name}`, signal);
    return { signal: place.ended.signal, release: async () => this.leave(place) };
  }

  now(): number {
    return this.clock.now();
  }

  /** Its lease ends with it: what it held is free, and what it had begun is interrupted. */
  stop(): void {
    this.isStopped = true;
    for (const place of this.kept.places.filter(({ server }) => server === this)) {
      const begun = this.kept.begun.get(place.turn?.arrival.turnId ?? '');
      if (begun) this.kept.interrupted.set(begun.turnId, begun);
      place.ended.abort(new LeaseEnded('expired'));
      this.leave(place);
    }
    for (const name of this.claimed) this.kept.claims.delete(name);
    for (const { server, opening } of this.kept.offers.values()) if (server === this && opening) opening.isOver = true;
  }
}
