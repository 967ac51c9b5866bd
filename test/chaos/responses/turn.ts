import { strict as assert } from 'node:assert';
import { Exchange, type ResponseEvent } from './clients.js';
import { type Conversation, type Input, type Played, play } from './conversation.js';

export const SURFACES = ['http', 'stream', 'socket', 'live', 'chat', 'chat-stream'] as const;
export type Surface = (typeof SURFACES)[number];

export interface TurnRequest {
  readonly surface: Surface;
  readonly stored: boolean;
  readonly input: Input;
  /** What the user said last: the model server knows the turn by it. */
  readonly text: string;
  /** The key of the session that the request names. */
  readonly session: string | undefined;
  /** The response that it continues. */
  readonly previous: Turn | undefined;
  /** The response whose conversation the request repeats in its input. */
  readonly resent: Turn | undefined;
  /** Whether the request does not name what it continues, because its connection remembers it. */
  readonly isImplied: boolean;
  readonly lane: string;
  readonly instructions: string | undefined;
}

/** How a turn must end: the status of the protocol, and why, for one that is incomplete. */
export interface Ending {
  readonly status: 'completed' | 'incomplete' | 'failed';
  readonly reason?: string;
}

/** One request for an answer: what must come of it, and what did. */
export class Turn {
  /** What must be shown and left; undefined until it begins. */
  played: Played | undefined;
  /** Whether it is part of its conversation; undefined until that is decided. */
  isKept: boolean | undefined;
  /** How it must end; undefined if any end will do. */
  ending: Ending | undefined;
  isVerified = false;
  /** Whether its client has disconnected. */
  isLeft = false;
  isDeleted = false;
  /** Whether the server was killed while it ran. */
  isKilled = false;
  /** Whether the client returned no results for the calls before it. */
  closesCalls = false;
  /** The prompts that the model server may be shown. */
  readonly prompts = new Set<string>();
  /** The rounds that the model server was asked for. */
  readonly asked = new Set<number>();
  /** Resolves when the model is in the middle of an answer that waits. */
  readonly inAnswer = Promise.withResolvers<void>();
  /** The game resolves it: that answer goes on. */
  readonly goOn = Promise.withResolvers<void>();
  /** The items of its own input. */
  input: readonly object[] = [];
  /** What its own client sees, and those that resumed it. */
  readonly exchange = new Exchange();
  readonly readers: Exchange[] = [];
  /** The server's ids of its client calls. */
  readonly callIds = new Map<string, string>();
  /** Every event that anybody saw, by its number. */
  readonly #events = new Map<number, ResponseEvent>();

  /** @param life the life of the server that it is created in. */
  constructor(
    readonly number: number,
    readonly request: TurnRequest,
    readonly life: number,
  ) {}

  get id(): string | undefined {
    return this.exchange.id;
  }

  get isResponse(): boolean {
    return !this.request.surface.startsWith('chat');
  }

  /** Whether its model is in the middle of its answer, and goes on when the game lets it. */
  get isWaiting(): boolean {
    return this.isKept === undefined && this.played?.end === 'waits';
  }

  /** Whether it waits for other turns of its session. */
  get isQueued(): boolean {
    return this.isKept === undefined && this.played === undefined;
  }

  /** The conversation that it leaves. */
  get after(): Conversation {
    if (!this.played || this.isKept !== true) throw new Error(`turn ${this.number} left no conversation`);
    return this.played.after;
  }

  /** The whole conversation, as the items that a client saw. */
  get items(): readonly object[] {
    const { previous, resent } = this.request;
    const { outcome } = this.exchange;
    const output = outcome?.is === 'ended' ? (outcome.response?.output ?? []) : [];
    return [...((previous ?? resent)?.items ?? []), ...this.input, ...output];
  }

  /** Whether the conversation was repeated by a client, at some time. */
  get isResent(): boolean {
    const { previous, resent } = this.request;
    return resent !== undefined || previous?.isResent === true;
  }

  /** Its place in the conversation is known from here on. */
  begin(before: Conversation): void {
    this.closesCalls = 'say' in this.request.input && before.open.length > 0;
    this.played = play(before, this.request.input, this.number);
  }

  /** How it ends if nothing comes between. */
  get naturalEnding(): Ending {
    if (this.played?.end === 'fails') return { status: 'failed' };
    return this.played?.end === 'stops' ? { status: 'incomplete', reason: 'max_output_tokens' } : { status: 'completed' };
  }

  /** The numbers of the events that are known, from 0 on without gaps. */
  get eventCount(): number {
    let count = 0;
    while (this.#events.has(count)) count++;
    return count;
  }

  /** All events from 0 on. */
  get events(): readonly ResponseEvent[] {
    return [...this.#events.values()].toSorted((one, other) => one.sequence_number - other.sequence_number);
  }

  /**
   * Every reader must be sent the same events with the same numbers, without gaps. Only `svc:`
   * events are left out for readers that did not ask for them.
   */
  compareEvents(): void {
    for (const { events } of [this.exchange, ...this.readers]) {
      let last = (events[0]?.sequence_number ?? 0) - 1;
      for (const event of events) {
        const number = event.sequence_number;
        assert.equal(this.nextNumber(last, [event]), last + 1, `turn ${this.number} numbers its events without gaps`);
        const known = this.#events.get(number);
        if (known) assert.deepEqual(event, known, `turn ${this.number} sends the same event ${number} to every reader`);
        this.#events.set(number, event);
        last = number;
      }
    }
  }

  /** The number of the first event, or of the first `svc:` event before it that was left out. */
  nextNumber(last: number, [first]: readonly ResponseEvent[]): number | undefined {
    const next = first?.sequence_number;
    if (next === undefined) return undefined;
    const skipped = Array.from({ length: Math.max(0, next - last - 1) }, (_, index) => this.#events.get(last + 1 + index));
    const isExtension = (event?: ResponseEvent) => event?.type.startsWith('svc:') ?? this.request.surface === 'live';
    return skipped.every(isExtension) ? last + 1 : next;
  }
}
