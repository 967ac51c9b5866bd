import { defineExtensionPoint, type Extensions } from '@plugboard/kernel';
import { invalidRequest } from '@plugboard/openai-protocol';

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

/** Returns the encoder for `stream: true`. @throws ProtocolError 400 if no plugin provides it. */
export function requireStreamEncoder(encoders: Extensions<StreamEncoder>): StreamEncoder {
  const encoder = encoders.get('sse');
  if (encoder) return encoder;
  throw invalidRequest(
    'This server does not support streaming: the plugin @plugboard/transport-sse is not loaded. Add `sse: {}` under `transports` in its configuration, or omit `stream`.',
    { param: 'stream', code: 'unsupported_value' },
  );
}
