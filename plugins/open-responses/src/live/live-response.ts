import type { AgentEvent, Clock, Logger } from '@plugboard/kernel';
import {
  type Account,
  type AgentEvents,
  type Failure,
  failed,
  failureOf,
  TurnError,
  type TurnEvents,
} from '@plugboard/kernel/contracts';
import { TurnLogFields } from '@plugboard/turn-routes';
import { outcomeOfFailure, type ResponseEnd } from '../events/outcome.js';
import type { ResponseEncoder } from '../events/response-encoder.js';
import type { InputItem } from '../request/request.js';
import { EventLog, type EventReader } from './event-log.js';

/**
 * Milliseconds after which a turn that has not begun waits behind another one of its session, and
 * its response is queued.
 */
const QUEUED_AFTER = 100;

type Batch = readonly AgentEvent[];

interface LiveResponseOptions {
  readonly encoder: ResponseEncoder;
  /** Whether it is found again by its id, and its events are kept for readers that come back. */
  readonly stored: boolean;
  /** Whether the client that creates it reads its events. */
  readonly incremental: boolean;
  /** Whether that client receives `svc:` events. */
  readonly extensions: boolean;
  /** The memory of the request, which it holds until its readers have left. */
  readonly account: Account;
  /** Turns queued before this one in its session (an estimate); undefined without a session. */
  readonly ahead: number | undefined;
  /** What the request has and has no effect. */
  readonly ignored: readonly string[];
  readonly work: ResponseWork;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * What a response needs until its end. It holds the request, and is dropped then: what has ended is
 * kept for a while, and the memory of the request no longer counts.
 */
interface ResponseWork {
  /** The items of the request. */
  readonly input: readonly InputItem[];
  /** Runs the turn. Called once. */
  run(signal: AbortSignal): RunningResponse;
  /** Receives each batch of the turn's events. */
  observe(batch: Batch): void;
  /** Stores the response, before its end is reported. Never rejects. @returns whether it did. */
  store(end: ResponseEnd): Promise<boolean>;
  /** Called once, after the last event. */
  onEnd(end: ResponseEnd): void;
}

/** The turn of a response. */
export interface RunningResponse {
  readonly events: AgentEvents;
  /** Undefined if no turn of the runtime is behind the events. */
  readonly turn: TurnEvents | undefined;
}

/**
 * One response from its acceptance to its end. It reads its turn and writes each event once, for
 * all its readers.
 *
 * 1. `open` starts the turn and waits until it is known how it begins: refused, running, or waiting
 *    in a queue.
 * 2. The client that created it reads with `reader`. Others join its `events`.
 * 3. It ends as its turn ends. `cancel` only asks the turn to end. The turn is told whether anyone
 *    reads the response, and decides what happens when nobody does.
 * 4. Its memory, which the turn reserves, is free again when it has ended and its readers have
 *    left.
 */
export class LiveResponse {
  readonly id: string;
  readonly logFields = new TurnLogFields();
  readonly encoder: ResponseEncoder;
  /** Its events. Readers join at any that is still kept, and the slowest one sets the pace. */
  readonly events: EventLog;
  /** Of the client that created it; undefined if that reads no events. */
  readonly reader: EventReader | undefined;
  /** Resolves after the last event. */
  readonly ended: Promise<ResponseEnd>;
  readonly #options: Omit<LiveResponseOptions, 'work'>;
  readonly #abort = new AbortController();
  readonly #resolveEnded: (end: ResponseEnd) => void;
  readonly #leaveAccount: () => void;
  #work: ResponseWork | undefined;
  /** Until the response has ended. */
  #turn: TurnEvents | undefined;
  #end: ResponseEnd | undefined;
  #isStored = false;

  constructor({ work, ...options }: LiveResponseOptions) {
    const { encoder, stored, incremental, extensions, account } = options;
    this.id = encoder.id;
    this.#options = options;
    this.#work = work;
    this.#leaveAccount = account.hold();
    this.encoder = encoder;
    this.events = new EventLog(stored, () => this.#onReaders());
    this.reader = incremental ? this.events.join(0, extensions) : undefined;
    const { promise, resolve } = Promise.withResolvers<ResponseEnd>();
    this.ended = promise;
    this.#resolveEnded = resolve;
  }

  /** How it ended; undefined while it runs. */
  get end(): ResponseEnd | undefined {
    return this.#end;
  }

  /** Whether the store has it: then it exists until it is deleted there, by any server. */
  get isStored(): boolean {
    return this.#isStored;
  }

  /** The items of the request; undefined when the response has ended. */
  get input(): readonly InputItem[] | undefined {
    return this.#work?.input;
  }

  /**
   * Starts the turn.
   *
   * @returns the failure if the turn was refused before it began; undefined if it runs or waits. A
   *   refused response has no events.
   */
  async open(): Promise<Failure | undefined> {
    const { clock, ahead, ignored } = this.#options;
    if (!this.#work) throw new Error('the response has ended');
    const { events, turn } = this.#work.run(this.#abort.signal);
    this.#turn = turn;
    const batches = events[Symbol.asyncIterator]();
    const first = batches.next();
    const late = Promise.withResolvers<'late'>();
    const timer = ahead !== undefined && clock.after(QUEUED_AFTER, () => late.resolve('late'));
    const begun = await Promise.race([first, late.promise]).catch(() => undefined); // `#drive` handles it
    if (timer) timer.cancel();
    const [event] = begun !== 'late' && begun?.done === false ? begun.value : [];
    // A turn that failed at once has no response, unless it was cancelled.
    if (event?.type === 'failed' && event.failure.code !== 'context_length_exceeded' && !this.#abort.signal.aborted)
      return this.#refused(event.failure);
    this.events.write(this.encoder.begin(begun === 'late' ? 'queued' : 'in_progress', { ahead, ignored }));
    void this.#drive(first, batches);
    return undefined;
  }

  /** The client that created it has left. */
  leave(): void {
    if (this.reader) this.reader.leave();
    else this.#turn?.setRead(false);
  }

  /**
   * Asks the turn to end. The response ends as the turn does: cancelled, cut short because the
   * server stops, or complete if the turn is being stored.
   */
  cancel(reason = new TurnError('turn_cancelled', 'The response was cancelled.')): void {
    if (this.#end || this.#abort.signal.aborted) return;
    this.#abort.abort(reason);
    this.events.removeLimit();
  }

  /** Writes what the turn says until its end, stores the response, and ends it. */
  async #drive(first: Promise<IteratorResult<Batch>>, batches: AsyncIterator<Batch>): Promise<void> {
    let last: readonly string[] = [];
    try {
      for (let next = await first; ; next = await batches.next()) {
        if (next.done) throw new Error('the events of a turn ended without a terminal event');
        last = this.#encode(next.value);
        if (this.encoder.end) break;
        const full = this.events.write(last);
        if (full) await full;
      }
    } catch (error) {
      this.#options.log.error({ err: error, response_id: this.id }, 'a response failed');
      await batches.return?.();
      last = this.#encode([failed(failureOf(error, true))]);
    }
    const { end } = this.encoder;
    if (!end) throw new Error('the response has not ended');
    this.#isStored = (await this.#work?.store(end)) ?? false;
    this.events.write(last);
    this.#conclude(end);
  }

  #encode(batch: Batch): readonly string[] {
    this.#work?.observe(batch);
    this.logFields.add(batch);
    return this.encoder.write(batch, this.#turn);
  }

  /** The turn was refused before it began: there is no response. */
  #refused(failure: Failure): Failure {
    this.logFields.add([{ type: 'failed', failure }]);
    this.reader?.leave();
    this.#conclude({ outcome: outcomeOfFailure(failure, undefined), response: '', failure, turn: undefined });
    return failure;
  }

  #conclude(end: ResponseEnd): void {
    this.#end = end;
    this.encoder.release();
    this.events.close();
    if (!this.events.isRead) this.#leaveAccount();
    this.#resolveEnded(end);
    this.#work?.onEnd(end);
    this.#work = undefined;
    this.#turn = undefined;
  }

  #onReaders(): void {
    const { isRead } = this.events;
    if (!this.#end) this.#turn?.setRead(isRead);
    else if (!isRead) this.#leaveAccount();
  }
}
