import type { Claimed } from '@plugboard/kernel';
import { httpErrorOf, invalidRequest, ProtocolError, serviceError } from '@plugboard/openai-protocol';
import type { HttpReply } from '@plugboard/transport-http';
import { connectionHeader } from '../request/headers.js';
import { ChunkWriter, streamOf } from './chunks.js';
import { completionOf } from './completion.js';
import { eventsOf, recordedAnswer } from './recorded-answer.js';
import type { StreamEncoder } from './stream-encoder.js';
import { TurnFacts } from './turn-log-fields.js';

const REPLAYED = { 'idempotent-replayed': 'true' };

/** How the repeated request wants its answer: as the first one did, for they are the same. */
export interface AnswerForm {
  /** For a stream. */
  readonly encoder: StreamEncoder | undefined;
  readonly includeUsage: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a request is answered whose turn is not run, because of what became of its key. @throws ProtocolError where that is no answer. */
export function repeated(claimed: Exclude<Claimed, { kind: 'new' }>, form: AnswerForm): HttpReply {
  switch (claimed.kind) {
    case 'replay':
      return replay(claimed.text, form);
    case 'running':
      throw invalidRequest('The request with this Idempotency-Key is still being answered; try again in a moment.', {
        status: 409,
        code: 'idempotency_in_progress',
        headers: { 'retry-after': '2' },
      });
    case 'mismatch':
      throw invalidRequest('This Idempotency-Key was used for another request; send each request with a key of its own.', {
        status: 422,
        param: 'Idempotency-Key',
        code: 'idempotency_mismatch',
      });
    case 'interrupted':
      throw serviceError(
        502,
        'The request with this Idempotency-Key was cut off after the agent had begun to run tools. To run it again, send it with another key.',
        { ...REPLAYED, 'x-should-retry': 'false' },
      );
    case 'failed':
      throw httpErrorOf(claimed.failure, false);
  }
}

function replay(text: string, { encoder, includeUsage, headers }: AnswerForm): HttpReply {
  const recorded = recordedAnswer(text);
  if ('error' in recorded) throw new ProtocolError(recorded.status, recorded.error, { ...recorded.headers, ...REPLAYED });
  const { head, answer } = recorded;
  const sent = { ...headers, ...connectionHeader(answer.connection), ...REPLAYED };
  if (!encoder) return { status: 200, headers: sent, body: completionOf(head, answer) };

  const writer = new ChunkWriter(head, {
    encoder,
    facts: new TurnFacts(),
    includeUsage,
    errorOf: (failure) => httpErrorOf(failure, false).body,
  });
  return { status: 200, headers: { ...encoder.headers, ...sent }, body: streamOf(eventsOf(answer), writer, true, () => {}) };
}
