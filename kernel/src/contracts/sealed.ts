import type { AgentEvent, AgentEvents } from './event.js';
import { failed, failureOf } from './failure.js';

/**
 * Guarantees exactly one terminal event: a thrown error or a missing terminal event becomes
 * `failed`, and nothing follows a terminal event. Readers of a sealed stream need no `catch`.
 *
 * @param onFailure receives the thrown error, for the log.
 */
export async function* sealed(events: AgentEvents, onFailure: (error: unknown) => void): AsyncGenerator<readonly AgentEvent[]> {
  let toolsRan = false;
  try {
    for await (const batch of events) {
      for (let i = 0; i < batch.length; i++) {
        const event = batch[i] as AgentEvent;
        if (event.type === 'tool-call' && event.tool !== undefined) toolsRan = true;
        if (!isTerminal(event)) continue;
        yield i === batch.length - 1 ? batch : batch.slice(0, i + 1);
        return;
      }
      yield batch;
    }
  } catch (error) {
    onFailure(error);
    yield [failed(failureOf(error, toolsRan))];
    return;
  }
  const cut = new Error('the events of a turn ended without a terminal event: an interceptor or the loop left it out');
  onFailure(cut);
  yield [failed(failureOf(cut, toolsRan))];
}

export function isTerminal(event: AgentEvent): boolean {
  return event.type === 'finished' || event.type === 'failed';
}
