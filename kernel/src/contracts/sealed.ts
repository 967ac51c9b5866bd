import type { AgentEvent, AgentEvents } from './event.js';
import { failed, failureOf } from './failure.js';

/**
 * The same events with their ending made certain: a throw, or an end without a terminal event, becomes the one `failed`, and nothing follows a terminal event. What reads
 * a sealed stream needs no `catch`.
 *
 * @param onFailure is told what was thrown, for the log; the caller is told what `failureOf` makes of it.
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
