import { TurnError } from '@plugboard/kernel/contracts';
import { type ResumedResponse, typeOfEvent } from '@plugboard/open-responses';
import type { StreamEncoder } from '@plugboard/transport-chat-completions';
import type { HttpReply } from '@plugboard/transport-http';

export const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' } as const;

/** Calls a function when a signal is aborted; at once if it is. */
export function onAbort(signal: AbortSignal, run: () => void): void {
  if (signal.aborted) run();
  else signal.addEventListener('abort', run, { once: true });
}

/**
 * Cancels a response when the drain time of the server is over: the reason of its signal is a
 * `TurnError` then. Clients receive the terminal event.
 */
export function cancelWhenStopped(response: ResumedResponse['response'], signal: AbortSignal): void {
  onAbort(signal, () => {
    if (signal.reason instanceof TurnError) response.cancel(signal.reason);
  });
}

/**
 * Sends the events of a response as they come.
 *
 * @param signal aborted when the client disconnects.
 * @param onEnd called when nothing more will be written.
 */
export function streamReply(
  reader: ResumedResponse['reader'],
  encoder: StreamEncoder,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  onEnd: () => void,
): HttpReply {
  // The generator below cannot notice a disconnect while it waits for the next event. A server that
  // stops ends the response itself.
  onAbort(signal, () => {
    if (!(signal.reason instanceof TurnError)) reader.leave();
  });
  return {
    status: 200,
    headers: { ...encoder.headers, ...headers },
    body: bodyOf(reader, encoder, onEnd),
    keepAlive: { every: encoder.keepAliveEvery, text: encoder.comment('keep-alive') },
  };
}

/** The frames of events. */
export function framesOf(events: readonly string[], { before, after }: StreamEncoder): string {
  let frames = '';
  for (const event of events) frames += `event: ${typeOfEvent(event)}\n${before}${event}${after}`;
  return frames;
}

/** The events of a response as they come. Joins those that arrived together into one write. */
async function* bodyOf(reader: ResumedResponse['reader'], encoder: StreamEncoder, onEnd: () => void): AsyncGenerator<string> {
  try {
    for (let events = await reader.next(); events !== undefined; events = await reader.next()) {
      const frames = framesOf(events, encoder);
      if (reader.isOver) {
        yield frames + encoder.done;
        return;
      }
      yield frames;
    }
    yield encoder.done;
  } finally {
    reader.leave();
    onEnd();
  }
}
