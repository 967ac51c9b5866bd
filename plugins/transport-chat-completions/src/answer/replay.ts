import type { ClaimResult } from '@plugboard/kernel/contracts';
import {
  claimError,
  connectionHeader,
  ProtocolError,
  REPLAYED_HEADER,
  TurnLogFields,
  TurnStream,
  turnFailureError,
} from '@plugboard/openai-protocol';
import type { HttpReply } from '@plugboard/transport-http';
import { ChunkWriter } from './chunks.js';
import { completionOf } from './completion.js';
import { eventsOf, recordedAnswer } from './recorded-answer.js';
import type { StreamEncoder } from './stream-encoder.js';

/** The form in which a request wants its answer. */
export interface AnswerForm {
  /** Set for a stream. */
  readonly encoder: StreamEncoder | undefined;
  readonly includeUsage: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Answers a repeated request without running a turn. @throws ProtocolError if there is no answer to
 * replay.
 */
export function replayAnswer(claimed: Exclude<ClaimResult, { kind: 'new' }>, form: AnswerForm): HttpReply {
  if (claimed.kind === 'replay') return replay(claimed.text, form);
  throw claimError(claimed);
}

function replay(text: string, { encoder, includeUsage, headers }: AnswerForm): HttpReply {
  const recorded = recordedAnswer(text);
  if ('error' in recorded) throw new ProtocolError(recorded.status, recorded.error, { ...recorded.headers, ...REPLAYED_HEADER });
  const { head, answer } = recorded;
  const sent = { ...headers, ...connectionHeader(answer.connection), ...REPLAYED_HEADER };
  if (!encoder) return { status: 200, headers: sent, body: completionOf(head, answer) };

  const writer = new ChunkWriter(head, {
    encoder,
    logFields: new TurnLogFields(),
    includeUsage,
    errorOf: (failure) => turnFailureError(failure, false).body,
  });
  return {
    status: 200,
    headers: { ...encoder.headers, ...sent },
    body: new TurnStream(eventsOf(answer), writer, true, () => {}),
  };
}
