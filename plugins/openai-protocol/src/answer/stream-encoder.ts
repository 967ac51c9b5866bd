import { defineExtensionPoint } from '@plugboard/kernel';

/**
 * Frames a stream of JSON texts for `stream: true`. Discipline: by name of the format; `sse` is the
 * only one today. Without it, `stream: true` is refused with an error that names the missing
 * plugin.
 */
export interface StreamEncoder {
  readonly headers: Readonly<Record<string, string>>;
  /** Written before and after each one-line JSON text. Constants, so that a token costs no call. */
  readonly before: string;
  readonly after: string;
  /** The complete last frame. */
  readonly done: string;
  /** A complete frame that readers ignore. */
  comment(text: string): string;
  /** Milliseconds of silence after which a comment is written. */
  readonly keepAliveEvery: number;
}

export const StreamEncoders = defineExtensionPoint<StreamEncoder>('chat-completions.stream-encoder', { discipline: 'by-name' });
