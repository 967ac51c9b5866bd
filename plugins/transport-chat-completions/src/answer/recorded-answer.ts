import type { AgentEvent } from '@plugboard/kernel';
import type { AgentEvents, AnswerRecorder, Failure } from '@plugboard/kernel/contracts';
import type { ErrorBody, ProtocolError } from '@plugboard/openai-protocol';
import { type Answer, AnswerBuilder, type AnswerHead } from './completion.js';

/** The answer to a request with an idempotency key, as stored for repetitions. */
type RecordedAnswer =
  | { readonly head: AnswerHead; readonly answer: Answer }
  | { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly error: ErrorBody };

/** Records the answer of a turn. */
export class Recorder implements AnswerRecorder {
  readonly #head: AnswerHead;
  readonly #isStream: boolean;
  readonly #errorOf: (failure: Failure) => ProtocolError;
  readonly #builder = new AnswerBuilder();
  /** The text of a stream, with the texts of its steps separated as in the stream. */
  #streamed = '';
  #separator = '';

  /** @param errorOf returns the error for a failed turn. */
  constructor(head: AnswerHead, isStream: boolean, errorOf: (failure: Failure) => ProtocolError) {
    this.#head = head;
    this.#isStream = isStream;
    this.#errorOf = errorOf;
  }

  add(batch: readonly AgentEvent[]): void {
    this.#builder.add(batch);
    if (!this.#isStream) return;
    for (const event of batch) {
      if (event.type === 'step' && this.#streamed !== '') this.#separator = '\n\n';
      if (event.type !== 'text' || event.isRefusal || event.text === '') continue;
      this.#streamed += this.#separator + event.text;
      this.#separator = '';
    }
  }

  text(): string {
    const { end } = this.#builder;
    if (!end) throw new Error('the recorded answer was read before the turn ended');
    return JSON.stringify('code' in end ? this.#failure(end) : this.#answer(end));
  }

  #answer(answer: Answer): RecordedAnswer {
    return { head: this.#head, answer: this.#isStream ? { ...answer, text: this.#streamed } : answer };
  }

  #failure(failure: Failure): RecordedAnswer {
    const { status, headers, body } = this.#errorOf(failure);
    return { status, headers, error: body };
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
  return ('head' in value && 'answer' in value) || ('status' in value && 'headers' in value && 'error' in value);
}

/** Bytes of UTF-8 per piece of a replayed stream. */
const PIECE = 4096;

/** Returns the events of a replayed stream. */
export async function* eventsOf({ text, refusal = '', toolCalls, finished }: Answer): AgentEvents {
  for (const piece of piecesOf(text)) yield [{ type: 'text', text: piece }];
  for (const piece of piecesOf(refusal)) yield [{ type: 'text', text: piece, isRefusal: true }];
  if (toolCalls.length > 0) yield toolCalls;
  yield [finished];
}

function* piecesOf(text: string): Generator<string> {
  const [encoder, piece] = [new TextEncoder(), new Uint8Array(PIECE)];
  for (let start = 0; start < text.length; ) {
    const { read } = encoder.encodeInto(text.slice(start, start + PIECE), piece); // whole characters only
    yield text.slice(start, start + read);
    start += read;
  }
}
