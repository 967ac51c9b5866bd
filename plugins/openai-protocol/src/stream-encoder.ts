import { defineExtensionPoint } from '@plugboard/kernel';

/**
 * How a stream of JSON texts is framed for `stream: true`. Discipline: the one of the format asked for, by name; `sse` is the
 * only one today. Without it, `stream: true` is refused with a sentence that says which plugin is missing.
 */
export interface StreamEncoder {
  readonly headers: Readonly<Record<string, string>>;
  /** What stands before and after each one-line JSON text. Constants, so that a token costs no call. */
  readonly before: string;
  readonly after: string;
  /** The whole frame that says that nothing follows. */
  readonly done: string;
  /** The whole frame that readers pass over. */
  comment(text: string): string;
  /** Milliseconds of silence after which a comment is written. */
  readonly keepAliveEvery: number;
}

export const StreamEncoders = defineExtensionPoint<StreamEncoder>('chat-completions.stream-encoder', { discipline: 'by-name' });
