import { messageWithWait, turnFailureError } from '@plugboard/openai-protocol';
import { type AnswerForm, type StreamForm, TurnStream } from '@plugboard/turn-routes';
import { ChunkWriter, isVisible } from './chunks.js';
import { type Answer, AnswerBuilder, type AnswerHead, completionOf } from './completion.js';
import { eventsOf } from './replay.js';
import type { StreamEncoder } from './stream-encoder.js';

export interface CompletionFormOptions {
  readonly head: AnswerHead;
  readonly headers: Readonly<Record<string, string>>;
  /** Set for a stream. */
  readonly encoder: StreamEncoder | undefined;
  readonly includeUsage: boolean;
  /** Whether the turn belongs to a session. */
  readonly isStateful: boolean;
}

/** A completion, whole or as a stream of chunks. */
export class CompletionForm implements AnswerForm {
  readonly head: AnswerHead;
  readonly headers: Readonly<Record<string, string>>;
  readonly stream: StreamForm | undefined;

  constructor({ head, headers, encoder, ...options }: CompletionFormOptions) {
    this.head = head;
    this.headers = headers;
    this.stream = encoder && streamForm(encoder, head, options);
  }

  fold(): AnswerBuilder {
    return new AnswerBuilder(this.stream !== undefined);
  }

  bodyOf(head: AnswerHead, answer: Answer): object {
    return completionOf(head, answer);
  }
}

function streamForm(
  encoder: StreamEncoder,
  head: AnswerHead,
  { includeUsage, isStateful }: Pick<CompletionFormOptions, 'includeUsage' | 'isStateful'>,
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
