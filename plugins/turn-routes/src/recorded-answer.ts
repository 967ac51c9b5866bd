import type { AgentEvent } from '@plugboard/kernel';
import type { AnswerRecorder, Failure } from '@plugboard/kernel/contracts';
import type { AnswerFold, FoldedAnswer } from './dialect.js';

/** The answer to a request with an idempotency key, as stored for repetitions. */
type RecordedAnswer = { readonly head: object; readonly answer: FoldedAnswer } | { readonly failure: Failure };

/** Records the answer of a turn. */
export class Recorder implements AnswerRecorder {
  readonly #head: object;
  readonly #fold: AnswerFold;

  constructor({ head, fold }: { readonly head: object; readonly fold: AnswerFold }) {
    this.#head = head;
    this.#fold = fold;
  }

  add(batch: readonly AgentEvent[]): void {
    this.#fold.add(batch);
  }

  text(): string {
    const { end } = this.#fold;
    if (!end) throw new Error('the recorded answer was read before the turn ended');
    const recorded: RecordedAnswer = isFailure(end) ? { failure: end } : { head: this.#head, answer: end };
    return JSON.stringify(recorded);
  }
}

/** Parses a text written by a recorder. @throws Error if it is anything else. */
export function recordedAnswer(text: string): RecordedAnswer {
  const recorded: unknown = JSON.parse(text);
  if (isRecorded(recorded)) return recorded;
  throw new Error('the answer stored for an idempotency key is malformed: another program has changed the session store');
}

function isRecorded(value: unknown): value is RecordedAnswer {
  if (typeof value !== 'object' || value === null) return false;
  return ('head' in value && 'answer' in value) || 'failure' in value;
}

/** Tells the two ends of a fold apart. */
export function isFailure(end: FoldedAnswer | Failure): end is Failure {
  return 'code' in end;
}
