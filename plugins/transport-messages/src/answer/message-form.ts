import type { Failure } from '@plugboard/kernel/contracts';
import type { AnswerForm, StreamForm } from '@plugboard/turn-routes';
import { errorBody } from '../errors/format-error.js';
import type { MessagesError } from '../errors/messages-error.js';
import { type AnswerHead, isVisible, type Visibility } from './blocks.js';
import { type Answer, AnswerBuilder, messageOf } from './message.js';
import { MessageWriter, PING_INTERVAL, replayedStream, STREAM_HEADERS } from './message-stream.js';

interface MessageFormOptions {
  readonly head: AnswerHead;
  readonly headers: Readonly<Record<string, string>>;
  readonly isStream: boolean;
  readonly visibility: Visibility;
  readonly requestId: string;
  readonly errorOf: (failure: Failure) => MessagesError;
}

/** A message, whole or as a stream of events. */
export function messageForm(options: MessageFormOptions): AnswerForm<AnswerHead, Answer> {
  const { head, headers, isStream, visibility, errorOf } = options;
  return {
    head,
    headers,
    errorOf,
    stream: isStream ? streamForm(options) : undefined,
    fold: () => new AnswerBuilder(visibility, isStream || visibility.tools !== 'none'),
    bodyOf: messageOf,
  };
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
