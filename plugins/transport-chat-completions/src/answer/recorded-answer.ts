import type { AgentEvent, AnswerRecorder, Failure } from '@plugboard/kernel';
import type { ErrorBody, ProtocolError } from '@plugboard/openai-protocol';
import { type Answer, AnswerFold, type AnswerHead } from './completion.js';

/** What a request was answered with, in the form in which it is kept until the request is repeated. */
export type RecordedAnswer =
  | { readonly head: AnswerHead; readonly answer: Answer }
  | { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly error: ErrorBody };

/** Writes down what a turn is answered with. */
export class Recorder implements AnswerRecorder {
  readonly #head: AnswerHead;
  readonly #isStream: boolean;
  readonly #errorOf: (failure: Failure) => ProtocolError;
  readonly #fold = new AnswerFold();
  /** All that a stream says, the texts of its steps apart as in the stream itself. */
  #spoken = '';
  #gap = '';

  /** @param errorOf what the caller of a failed turn is told. */
  constructor(head: AnswerHead, isStream: boolean, errorOf: (failure: Failure) => ProtocolError) {
    this.#head = head;
    this.#isStream = isStream;
    this.#errorOf = errorOf;
  }

  add(batch: readonly AgentEvent[]): void {
    this.#fold.add(batch);
    if (!this.#isStream) return;
    for (const event of batch) {
      if (event.type === 'step' && this.#spoken !== '') this.#gap = '\n\n';
      if (event.type !== 'text' || event.text === '') continue;
      this.#spoken += this.#gap + event.text;
      this.#gap = '';
    }
  }

  text(): string {
    const { end } = this.#fold;
    if (!end) throw new Error('the answer of a turn was asked for before its end');
    return JSON.stringify('code' in end ? this.#failure(end) : this.#answer(end));
  }

  #answer(answer: Answer): RecordedAnswer {
    return { head: this.#head, answer: this.#isStream ? { ...answer, text: this.#spoken } : answer };
  }

  #failure(failure: Failure): RecordedAnswer {
    const { status, headers, body } = this.#errorOf(failure);
    return { status, headers, error: body };
  }
}

/** What stands in a text that a recorder wrote. @throws where it is anything else. */
export function recordedAnswer(text: string): RecordedAnswer {
  const recorded: unknown = JSON.parse(text);
  if (isRecorded(recorded)) return recorded;
  throw new Error(
    'what is kept under an idempotency key is not what this server writes: something else has changed the session store',
  );
}

function isRecorded(value: unknown): value is RecordedAnswer {
  if (typeof value !== 'object' || value === null) return false;
  return ('head' in value && 'answer' in value) || ('status' in value && 'headers' in value && 'error' in value);
}

/** Bytes of UTF-8 that one piece of a repeated stream has at most. */
const PIECE = 4096;

/** The events of an answer that is streamed once more. */
export function* eventsOf({ text, toolCalls, finished }: Answer): Generator<readonly AgentEvent[]> {
  const [encoder, room] = [new TextEncoder(), new Uint8Array(PIECE)];
  for (let start = 0; start < text.length; ) {
    const { read } = encoder.encodeInto(text.slice(start, start + PIECE), room); // whole characters only
    yield [{ type: 'text', text: text.slice(start, start + read) }];
    start += read;
  }
  if (toolCalls.length > 0) yield toolCalls;
  yield [finished];
}
