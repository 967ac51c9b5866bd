import type { AgentEvent } from '@plugboard/kernel';
import type { AnswerRecorder, Failure } from '@plugboard/kernel/contracts';
import { type ErrorType, MessagesError } from '../errors/messages-error.js';
import type { AnswerHead, Visibility } from './blocks.js';
import { type Answer, AnswerBuilder } from './message.js';

/** The answer to a request with an idempotency key, as stored for repetitions. */
type RecordedAnswer =
  | { readonly head: AnswerHead; readonly answer: Answer }
  | {
      readonly status: number;
      readonly type: ErrorType;
      readonly message: string;
      readonly headers: Readonly<Record<string, string>>;
    };

/** Records the answer of a turn. */
export class Recorder implements AnswerRecorder {
  readonly #head: AnswerHead;
  readonly #builder: AnswerBuilder;
  readonly #errorOf: (failure: Failure) => MessagesError;

  constructor(head: AnswerHead, visibility: Visibility, isStream: boolean, errorOf: (failure: Failure) => MessagesError) {
    this.#head = head;
    this.#builder = isStream ? new AnswerBuilder(visibility, true) : new AnswerBuilder(visibility);
    this.#errorOf = errorOf;
  }

  add(batch: readonly AgentEvent[]): void {
    this.#builder.add(batch);
  }

  text(): string {
    const { end } = this.#builder;
    if (!end) throw new Error('the recorded answer was read before the turn ended');
    return JSON.stringify('code' in end ? this.#failure(end) : { head: this.#head, answer: end });
  }

  #failure(failure: Failure): RecordedAnswer {
    const { status, type, message, headers } = this.#errorOf(failure);
    return { status, type, message, headers };
  }
}

/**
 * Reads a text written by a recorder.
 *
 * @throws MessagesError if the turn failed, Error if the text is anything else.
 */
export function recordedAnswer(
  text: string,
  headers: Readonly<Record<string, string>>,
): { readonly head: AnswerHead; readonly answer: Answer } {
  const recorded: unknown = JSON.parse(text);
  if (!isRecorded(recorded)) {
    throw new Error('the answer stored for an idempotency key is malformed: another program has changed the session store');
  }
  if ('answer' in recorded) return recorded;
  const { status, type, message } = recorded;
  throw new MessagesError(status, type, message, { headers: { ...recorded.headers, ...headers } });
}

function isRecorded(value: unknown): value is RecordedAnswer {
  if (typeof value !== 'object' || value === null) return false;
  return ('head' in value && 'answer' in value) || ('status' in value && 'type' in value && 'message' in value);
}
