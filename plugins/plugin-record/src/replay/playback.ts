import { isDeepStrictEqual } from 'node:util';
import type { InterceptedCall, ModelEvent, ToolOutput } from '@plugboard/kernel';
import { ModelError } from '@plugboard/kernel';
import { type FailureCode, type ModelCall, TurnError } from '@plugboard/kernel/contracts';
import type { Attempt, Recording, ToolLine } from '../format/recording.js';
import { errorOf } from '../record/recorded-error.js';
import type { MissingResult } from './compare.js';
import { endedFromOutside } from './outside.js';

/** The result of a call for which nothing was recorded. */
const NO_RESULT: ToolOutput = {
  content: [{ type: 'text', text: 'Error: the result of this call was not recorded, and tools do not run in a rehearsal.' }],
  isError: true,
};

type AskModel = (call: ModelCall) => AsyncIterable<readonly ModelEvent[]>;

/**
 * Plays one recorded turn: models and tools give what was recorded.
 *
 * 1. An attempt gets the next answer of its step and connection. A connection that the recorded
 *    turn skipped, because it had failed before, is skipped again.
 * 2. If the agent has other connections now, the first that is asked gives the recorded answer.
 * 3. A tool call gets the result of the same call: of its step first, then of another.
 * 4. Where people, time or the server ended the recorded turn, the replay ends in the same way.
 */
export class Playback {
  readonly recording: Recording;
  readonly #isLive: boolean;
  readonly #end = new AbortController();
  readonly #endsFromOutside: boolean;
  /** The attempts that were not played yet, by their steps. */
  readonly #attempts: ReadonlyMap<number, Attempt[]>;
  readonly #played = new Set<ToolLine>();
  readonly #ignored = new Set<string>();
  readonly #onAsk: () => void;
  readonly missing: MissingResult[] = [];
  /** Whether the turn made a model call without a recorded answer. */
  isCutShort = false;

  /**
   * @param isLive whether the models answer themselves.
   * @param onAsk called before each answer.
   */
  constructor(recording: Recording, isLive: boolean, onAsk: () => void = () => {}) {
    this.recording = recording;
    this.#onAsk = onAsk;
    this.#isLive = isLive;
    this.#endsFromOutside = endedFromOutside(recording);
    this.#attempts = Map.groupBy(recording.attempts, ({ step }) => step);
  }

  /** Ends the turn. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  isIgnored = ({ step, attempt }: Pick<Attempt, 'step' | 'attempt'>): boolean => this.#ignored.has(`${step}.${attempt}`);

  /** @param connections those of the agent as it is now. */
  async *answer(call: ModelCall, connections: readonly string[], next: AskModel): AsyncGenerator<readonly ModelEvent[]> {
    if (this.#isLive) return yield* next(call);
    this.#onAsk();
    const played = this.#next(call, connections);
    if (played === 'skipped') {
      this.#ignore(call);
      throw new ModelError('was not asked when the turn was recorded', { retryable: false });
    }
    if (played === undefined) {
      this.#ignore(call);
      return this.#beyond(call);
    }
    const { events, error } = played;
    if (events.length > 0) yield events;
    if (error) throw errorOf(this.#isRetried(played) ? { ...error, retryAfter: 0 } : error);
    const isCut = events.at(-1)?.type !== 'end';
    if (isCut && this.#endsFromOutside && played === this.recording.attempts.at(-1)) this.#endAsRecorded();
  }

  /**
   * @param made the call as the model made it; absent if that is unknown.
   * @param run runs the tool that throws the error.
   */
  async tool(call: InterceptedCall, made: ToolLine | undefined, run: (error: Error) => Promise<ToolOutput>): Promise<ToolOutput> {
    const line = made && this.#lineOf(made);
    if (line) this.#played.add(line);
    if (line?.isPostponed) call.postpone();
    if (line?.failed) {
      const { message, isRefusal } = line.failed;
      if (isRefusal) throw new TurnError('forbidden', message);
      return run(new Error(message));
    }
    if (line?.output !== undefined) return line.output;
    if (this.#endsFromOutside && (!line || line.state === 'cut')) this.#endAsRecorded();
    const { step = 0, name = call.tool } = made ?? {};
    this.missing.push({ step, call: { tool: name, arguments: call.input } });
    return NO_RESULT;
  }

  /** @returns undefined if no answer was recorded. */
  #next({ step, connection }: ModelCall, connections: readonly string[]): Attempt | 'skipped' | undefined {
    const left = this.#attempts.get(step) ?? [];
    const [next] = left;
    if (next === undefined || next.connection === connection) return left.shift();
    if (isDeepStrictEqual(connections, this.recording.turn.connections)) return 'skipped';
    let last = left.shift();
    for (let more = left[0]; more && last && more.attempt > last.attempt; more = left[0]) last = left.shift();
    return last;
  }

  /** A request for which no answer is left. */
  #beyond({ step, connection, model }: ModelCall): void {
    const { end, attempts } = this.recording;
    if (end.limit === 'budget') throw new TurnError('insufficient_quota', 'The budget was spent.');
    if (this.#endsFromOutside && !attempts.some((attempt) => attempt.step > step)) this.#endAsRecorded();
    // What the server remembers of earlier turns decides how often it asks: what failed, fails.
    const last = attempts.findLast((attempt) => attempt.step === step && attempt.connection === connection);
    if (last?.error) throw errorOf({ ...last.error, retryAfter: 0 });
    this.missing.push({ step, call: { connection, model } });
    this.isCutShort = true;
    this.#endWith(new TurnError('turn_cancelled', 'No answer was recorded for this request.'));
  }

  /** Whether the same connection is asked again: then without a pause. */
  #isRetried({ step, connection }: Attempt): boolean {
    return this.#endsFromOutside || this.#attempts.get(step)?.[0]?.connection === connection;
  }

  /** The same call of the same step, or of another. A result may serve several calls. */
  #lineOf(made: ToolLine): ToolLine | undefined {
    const same = this.recording.tools.filter((line) => line.name === made.name && isSameJson(line.arguments, made.arguments));
    const unused = same.filter((line) => !this.#played.has(line));
    return unused.find(({ step }) => step === made.step) ?? unused[0] ?? same.find(({ output }) => output !== undefined);
  }

  #ignore({ step, attempt }: ModelCall): void {
    this.#ignored.add(`${step}.${attempt}`);
  }

  /** Ends the turn with the recorded failure. */
  #endAsRecorded(): void {
    this.#endWith(new TurnError(this.recording.end.status as FailureCode, 'The recorded turn ended here.'));
  }

  #endWith(error: TurnError): void {
    this.#end.abort(error);
    throw error;
  }
}

/** Models write the same arguments with other spaces. */
function isSameJson(text: string, other: string): boolean {
  if (text === other) return true;
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(JSON.parse(other));
  } catch {
    return false;
  }
}
