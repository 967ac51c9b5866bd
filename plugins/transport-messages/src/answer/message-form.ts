import type { Failure } from '@plugboard/kernel/contracts';
import type { AnswerForm, StreamForm } from '@plugboard/turn-routes';
import { errorBody } from '../errors/format-error.js';
import type { MessagesError } from '../errors/messages-error.js';
import { type AnswerHead, isVisible, type Visibility } from './blocks.js';
import { type Answer, AnswerBuilder, messageOf } from './message.js';
import { MessageWriter, PING_INTERVAL, replayedStream, STREAM_HEADERS } from './message-stream.js';

export interface MessageFormOptions {
  readonly head: AnswerHead;
  readonly headers: Readonly<Record<string, string>>;
  readonly isStream: boolean;
  readonly visibility: Visibility;
  readonly requestId: string;
  readonly errorOf: (failure: Failure) => MessagesError;
}

/** A message, whole or as a stream of events. */
export class MessageForm implements AnswerForm {
  readonly head: AnswerHead;
  readonly headers: Readonly<Record<string, string>>;
  readonly stream: StreamForm<AnswerHead, Answer> | undefined;
  readonly errorOf: (failure: Failure) => MessagesError;
  readonly #visibility: Visibility;

  constructor(options: MessageFormOptions) {
    this.head = options.head;
    this.headers = options.headers;
    this.stream = options.isStream ? streamForm(options) : undefined;
    this.errorOf = options.errorOf;
    this.#visibility = options.visibility;
  }

  fold(): AnswerBuilder {
    return this.stream ? new AnswerBuilder(this.#visibility, true) : new AnswerBuilder(this.#visibility);
  }

  bodyOf(head: AnswerHead, answer: Answer): object {
    return messageOf(head, answer);
  }
}

function streamForm({ head, visibility, requestId, errorOf }: MessageFormOptions): StreamForm<AnswerHead, Answer> {
  return {
    headers: STREAM_HEADERS,
    keepAliveEvery: PING_INTERVAL,
    isVisible: (event) => isVisible(event, visibility),
    writer: () =>
      new MessageWriter(head, {
        visibility,
        errorOf: (failure) => {
          const error = errorOf(failure);
          return errorBody(error.type, error, requestId, failure.retryAfter);
        },
      }),
    replay: replayedStream,
  };
}
