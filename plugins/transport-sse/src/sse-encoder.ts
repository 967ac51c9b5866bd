import { parseDuration } from '@plugboard/kernel';
import type { StreamEncoder } from '@plugboard/transport-chat-completions';
import type { SseConfig } from './config.js';

/**
 * Frames a stream as Server-Sent Events, with `data:` lines and comments only. Some clients fail on
 * other fields (`event:`, `id:`, `retry:`) and on an empty `data:` line.
 */
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

  constructor(config: SseConfig) {
    this.keepAliveEvery = parseDuration(config.keepAlive);
  }

  /** @param text one line. Not `ping`: one client treats `: ping` as the end of the stream. */
  comment(text: string): string {
    return `: ${text}\n\n`;
  }
}
