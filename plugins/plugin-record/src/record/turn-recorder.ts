import { tracingChannel } from 'node:diagnostics_channel';
import type { AgentEvent, Clock, InterceptedCall, Interceptor, ModelEvent, ToolInterceptor } from '@plugboard/kernel';
import type { AgentEvents, ModelCall, ModelInterceptor, TurnRequest, Usage } from '@plugboard/kernel/contracts';
import type { Recording } from '../format/recording.js';
import { type Arrival, failureOf, RecordedTurn } from './recorded-turn.js';

/** What the recordings are for. */
export interface RecordingSink {
  /** Whether turns of the agent are recorded. */
  wants(agent: string): boolean;
  /** A turn is about to hold so many bytes. Returns false if its recording must be dropped. */
  grow(bytes: number): boolean;
  /**
   * A turn has ended, or is no longer recorded.
   *
   * @param bytes what it holds, until the sink no longer needs the recording.
   */
  done(recording: Recording | undefined, bytes: number): void;
}

interface TurnContext {
  readonly turnId: string;
  readonly request: TurnRequest;
  /** At the end. */
  readonly status?: string;
  readonly usage?: Usage;
}

interface StepContext {
  readonly turn: { readonly id: string };
  readonly connections: readonly string[];
}

/** A tracing channel requires all five handlers. */
const UNUSED = { start() {}, end() {}, asyncStart() {}, asyncEnd() {}, error() {} };

const CHANNELS = { turn: tracingChannel('plugboard.turn'), step: tracingChannel('plugboard.step') };

/**
 * Watches turns, and collects a recording of each.
 *
 * 1. A turn begins on the channel `plugboard.turn`, of whichever server in this process. Only the
 *    interceptors know whose it is: what they see is recorded.
 * 2. The interceptors only watch. What they pass on is what they received.
 * 3. The turn ends on its channel, when it is known how, and its recording goes to the sink.
 */
export class TurnRecorder {
  readonly #clock: Clock;
  readonly #sink: RecordingSink;
  /** Running turns of all servers of the process. */
  readonly #arrivals = new Map<string, Arrival>();
  /** Those of this server that are recorded. */
  readonly #turns = new Map<string, RecordedTurn>();
  readonly #byRequest = new Map<string, RecordedTurn>();

  constructor(clock: Clock, sink: RecordingSink) {
    this.#clock = clock;
    this.#sink = sink;
  }

  start(): void {
    CHANNELS.turn.subscribe(this.#turnHandlers);
    CHANNELS.step.subscribe(this.#stepHandlers);
  }

  stop(): void {
    CHANNELS.turn.unsubscribe(this.#turnHandlers);
    CHANNELS.step.unsubscribe(this.#stepHandlers);
  }

  readonly interceptor: Interceptor = (turn, next) => {
    const recorded = this.#of(turn.id, turn.agent);
    if (!recorded) return next(turn);
    recorded.begin(turn);
    return watched(next(turn), recorded);
  };

  readonly modelInterceptor: ModelInterceptor = (call, next) => {
    const recorded = this.#of(call.turnId, call.agent);
    return recorded ? this.#answer(recorded, call, next) : next(call);
  };

  readonly toolInterceptor: ToolInterceptor = async (call, next) => {
    const recorded = this.turnOf(call);
    if (!recorded) return next(call);
    try {
      const output = await next(call);
      recorded.ran(call, { output });
      return output;
    } catch (error) {
      recorded.ran(call, failureOf(error));
      throw error;
    }
  };

  /** The turn of a tool call. A call of an earlier turn that was approved has that turn's id. */
  turnOf({ turnId, requestId }: Pick<InterceptedCall, 'turnId' | 'requestId'>): RecordedTurn | undefined {
    return this.#turns.get(turnId) ?? this.#byRequest.get(requestId);
  }

  async *#answer(
    recorded: RecordedTurn,
    call: ModelCall,
    next: (call: ModelCall) => AsyncIterable<readonly ModelEvent[]>,
  ): AsyncGenerator<readonly ModelEvent[]> {
    const attempt = recorded.attempt(call);
    try {
      for await (const batch of next(call)) {
        recorded.answered(attempt, batch);
        yield batch;
      }
    } catch (error) {
      // After an abort, the error says only that.
      if (!call.signal.aborted) attempt.fail(error);
      throw error;
    } finally {
      attempt.end(this.#clock.monotonic());
    }
  }

  /** The recording of a turn, from the first time that an interceptor sees it. */
  #of(turnId: string, agent: string): RecordedTurn | undefined {
    const known = this.#turns.get(turnId);
    const arrival = this.#arrivals.get(turnId);
    if (known || !arrival || !this.#sink.wants(agent)) return known;
    const recorded = new RecordedTurn(arrival, this.#clock, (bytes) => {
      if (this.#sink.grow(bytes)) return true;
      this.#forget(turnId, arrival.request);
      this.#sink.done(undefined, recorded.bytes);
      return false;
    });
    this.#turns.set(turnId, recorded);
    // A turn that a tool call started has the id of the same request.
    if (!arrival.request.parent) this.#byRequest.set(arrival.request.requestId, recorded);
    return recorded;
  }

  /** The rest of the turn is not watched: it is no longer known. */
  #forget(turnId: string, { requestId }: TurnRequest): void {
    this.#arrivals.delete(turnId);
    if (this.#byRequest.get(requestId) === this.#turns.get(turnId)) this.#byRequest.delete(requestId);
    this.#turns.delete(turnId);
  }

  readonly #turnHandlers = {
    ...UNUSED,
    start: (context: object) => {
      const { turnId, request } = context as TurnContext;
      this.#arrivals.set(turnId, { request, at: this.#clock.now(), started: this.#clock.monotonic() });
    },
    asyncEnd: (context: object) => {
      const { turnId, request, status = '', usage } = context as TurnContext;
      const recorded = this.#turns.get(turnId);
      this.#forget(turnId, request);
      if (recorded) this.#sink.done(recorded.end(status, usage), recorded.bytes);
    },
  };

  readonly #stepHandlers = {
    ...UNUSED,
    start: (context: object) => {
      const { turn, connections } = context as StepContext;
      const recorded = this.#turns.get(turn.id);
      if (recorded) recorded.connections = connections;
    },
  };
}

async function* watched(events: AgentEvents, recorded: RecordedTurn): AsyncGenerator<readonly AgentEvent[]> {
  for await (const batch of events) {
    recorded.add(batch);
    yield batch;
  }
}
