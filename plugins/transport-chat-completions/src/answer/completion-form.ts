import { messageWithWait, turnFailureError } from '@plugboard/openai-protocol';
import { type AnswerForm, type StreamForm, TurnStream } from '@plugboard/turn-routes';
import { ChunkWriter, isVisible } from './chunks.js';
import { type Answer, AnswerBuilder, type AnswerHead, completionOf } from './completion.js';
import { eventsOf } from './replay.js';
import type { StreamEncoder } from './stream-encoder.js';

interface CompletionFormOptions {
  readonly head: AnswerHead;
  readonly headers: Readonly<Record<string, string>>;
  /** Set for a stream. */
  readonly encoder: StreamEncoder | undefined;
  readonly includeUsage: boolean;
  /** Whether the turn belongs to a session. */
  readonly isStateful: boolean;
}

/** A completion, whole or as a stream of chunks. */
export function completionForm(options: CompletionFormOptions): AnswerForm<AnswerHead, Answer> {
  const { head, headers, encoder } = options;
  return {
    head,
    headers,
    stream: encoder && streamForm(encoder, options),
    fold: () => new AnswerBuilder(encoder !== undefined),
    bodyOf: completionOf,
  };
}

function streamForm(
  encoder: StreamEncoder,
  { head, includeUsage, isStateful }: CompletionFormOptions,
): StreamForm<AnswerHead, Answer> {
  const writer = (shown: AnswerHead) =>
    new ChunkWriter(shown, {
      encoder,
      includeUsage,
      errorOf: (failure) => turnFailureError({ ...failure, message: messageWithWait(failure) }, isStateful).body,
    });
  return {
    headers: encoder.headers,
    keepAliveEvery: encoder.keepAliveEvery,
    isVisible,
    writer: () => writer(head),
    replay: (shown, answer) => new TurnStream(eventsOf(answer), { writer: writer(shown), hasContent: true }),
  };
}
