import { CONFIG, inject, injectable, parseDuration } from '@plugboard/kernel';
import type { StreamEncoder } from '@plugboard/openai-protocol';
import type { SseConfig } from './config.js';

/**
 * Frames a stream as Server-Sent Events: `data:` lines and comments, and nothing else. Clients of the protocol exist that fail on
 * each of the format's other fields (`event:`, `id:`, `retry:`), and on a `data:` line without anything.
 */
@injectable()
export class SseEncoder implements StreamEncoder {
  readonly headers = {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  };
  readonly before = 'data: ';
  readonly after = '\n\n';
  readonly done = 'data: [DONE]\n\n';
  readonly keepAliveEvery: number;

  constructor(@inject(CONFIG) config: SseConfig) {
    this.keepAliveEvery = parseDuration(config.keepAlive);
  }

  /** @param text one line, and not `ping`: a client exists that takes `: ping` for the end of what it has read. */
  comment(text: string): string {
    return `: ${text}\n\n`;
  }
}
