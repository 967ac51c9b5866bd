import type { AgentEvent } from '@plugboard/kernel';
import type { AnswerRecorder, Failure } from '@plugboard/kernel/contracts';
import {
  type EndedResponse,
  outcomeOfFinish,
  type PlannedResponse,
  ResponseEncoder,
  replayEvents,
  typeOfEvent,
} from '@plugboard/open-responses';
import { type ErrorBody, ProtocolError } from '@plugboard/openai-protocol';
import type { StreamEncoder } from '@plugboard/transport-chat-completions';
import type { HttpReply } from '@plugboard/transport-http';
import { REPLAYED_HEADER } from '@plugboard/turn-routes';
import { JSON_HEADERS } from './reply.js';

/** The recorded answer to a request, for when the request is repeated. */
type RecordedResponse =
  | { readonly response: EndedResponse }
  | { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly error: ErrorBody };

/** Records the response of a turn, for a request that its client may repeat. */
export class ResponseRecorder implements AnswerRecorder {
  readonly #planned: PlannedResponse;
  readonly #encoder: ResponseEncoder;
  #text = '';

  constructor(planned: PlannedResponse) {
    this.#planned = planned;
    const visibility = planned.target.toolVisibility;
    const { showsReasoning, seal, forms } = planned;
    this.#encoder = new ResponseEncoder(planned.head, { visibility, showsReasoning, seal, forms, extensions: false });
  }

  add(batch: readonly AgentEvent[]): void {
    this.#encoder.write(batch, true);
    const last = batch.at(-1);
    if (last?.type === 'failed') this.#text = this.#failed(last.failure);
    if (last?.type !== 'finished') return;
    const outcome = outcomeOfFinish(last);
    this.#encoder.close(outcome);
    this.#text = `{"response":${this.#encoder.response(outcome, this.#planned.now())}}`;
  }

  text(): string {
    if (this.#text === '') throw new Error('the answer of a turn was requested before its end');
    return this.#text;
  }

  #failed(failure: Failure): string {
    const { status, headers, body } = this.#planned.errorOf(failure);
    return JSON.stringify({ status, headers, error: body } satisfies RecordedResponse);
  }
}

/**
 * Answers a repeated request as the first one was answered. A stream is replayed with its deltas,
 * which may be larger than the first time.
 *
 * @throws ProtocolError for a recorded error.
 */
export function replyTo(text: string, encoder: StreamEncoder | undefined, headers: Readonly<Record<string, string>>): HttpReply {
  const recorded = JSON.parse(text) as RecordedResponse;
  if ('error' in recorded) throw new ProtocolError(recorded.status, recorded.error, { ...recorded.headers, ...REPLAYED_HEADER });
  const { response } = recorded;
  if (!encoder)
    return { status: 200, headers: { ...JSON_HEADERS, ...headers, ...REPLAYED_HEADER }, body: JSON.stringify(response) };
  return { status: 200, headers: { ...encoder.headers, ...headers, ...REPLAYED_HEADER }, body: replayed(response, encoder) };
}

async function* replayed(response: EndedResponse, { before, after, done }: StreamEncoder): AsyncGenerator<string> {
  let frames = '';
  for (const event of replayEvents(response)) frames += `event: ${typeOfEvent(event)}\n${before}${event}${after}`;
  yield frames + done;
}
