import type { Clock, Interceptor, Logger } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import type { StarterConfig } from './config.ts';

/** Refuses long conversations, and logs the time and tokens of each turn. */
export function starterInterceptor({ maxMessages }: StarterConfig, clock: Clock, log: Logger): Interceptor {
  return async function* (turn, next) {
    if (turn.messages.length > maxMessages) {
      const message = `This conversation has more than ${maxMessages} messages; start a new one.`;
      throw new TurnError('invalid_request', message, { param: 'messages' });
    }
    const begun = clock.monotonic();
    for await (const batch of next(turn)) {
      const last = batch.at(-1);
      if (last?.type === 'finished') {
        const { promptTokens: read, completionTokens: written } = last.usage;
        const duration_ms = Math.round(clock.monotonic() - begun);
        log.info({ request_id: turn.requestId, agent: turn.agent, duration_ms, read, written }, 'turn');
      }
      yield batch;
    }
  };
}
