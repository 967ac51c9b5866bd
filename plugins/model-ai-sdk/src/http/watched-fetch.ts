import { type Clock, ModelError } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import { type HeldAnswer, heldAnswers } from './held-answer.js';
import { type OpenEvent, openEventOf } from './open-event.js';

/** Bytes of one answer. */
const MAX_ANSWER = 64 * 2 ** 20;

/** Bytes of an event. */
const MAX_EVENT = 16 * 2 ** 20;
/** Bytes of the body of an error, or of an answer that is not a stream (S-75). */
const MAX_ERROR = 65_536;
/** How JSON and HTML begin. No event of a stream begins like this. */
const NO_EVENT = /^\s*[{[<]/;

interface FetchErrors {
  idle(): ModelError;
  redirect(status: number): ModelError;
  brokenOff(cause: unknown): ModelError;
  tooLarge(what: string, limit: number): ModelError;
  notAStream(text: string): ModelError;
}

/**
 * A `fetch` for provider packages that fails when no byte arrives for a while, does not
 * follow redirects, which would send the key to another server, limits the size of answers and of
 * their events, and reserves an event before it is complete.
 *
 * @param idleTimeout milliseconds.
 */
export function watchedFetch(clock: Clock, idleTimeout: number, errors: FetchErrors): typeof fetch {
  return async (input, init) => {
    const idle = new AbortController();
    const watch = () => clock.after(idleTimeout, () => idle.abort(errors.idle()));
    const signal = init?.signal ? AbortSignal.any([init.signal, idle.signal]) : idle.signal;
    const timer = watch();
    try {
      const response = await fetch(input, { ...init, redirect: 'manual', signal });
      if (response.status >= 300 && response.status < 400) throw errors.redirect(response.status);
      if (response.body === null) return response;
      const { status, statusText, headers } = response;
      const body = response.ok
        ? watchedBody(response.body, watch, errors, openEventOf(headers.get('content-type')), heldAnswers.getStore())
        : beginningOf(response.body, watch);
      return new Response(body, { status, statusText, headers });
    } catch (error) {
      throw idle.signal.aborted ? idle.signal.reason : error;
    } finally {
      timer.cancel();
    }
  };
}

type Watch = () => { cancel(): void };

/** A stream of events, neither JSON nor HTML. Idle time counts while somebody waits. */
function watchedBody(
  body: ReadableStream<Uint8Array>,
  watch: Watch,
  errors: FetchErrors,
  openEvent: OpenEvent,
  held: HeldAnswer | undefined,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let size = 0;
  /** Chunks that wait for the end of their event. */
  let waiting: Uint8Array[] = [];
  /** Bytes of the largest event so far. */
  let largest = 0;
  const read = async () => {
    const timer = watch();
    try {
      return await reader.read();
    } catch (error) {
      throw error instanceof ModelError || error instanceof TurnError ? error : errors.brokenOff(error);
    } finally {
      timer.cancel();
    }
  };
  const fail = (error: unknown) => {
    reader.cancel().catch(() => {});
    throw error;
  };
  /** Counts a chunk before it is held. */
  const take = (chunk: Uint8Array) => {
    size += chunk.length;
    if (size > MAX_ANSWER) fail(errors.tooLarge('an answer', MAX_ANSWER));
    const event = openEvent.take(chunk);
    if (event > MAX_EVENT) fail(errors.tooLarge('an event', MAX_EVENT));
    try {
      held?.add(event - largest);
    } catch (error) {
      fail(error);
    }
    largest = Math.max(largest, event);
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await read();
          if (done) {
            if (waiting.length > 0) controller.enqueue(Buffer.concat(waiting));
            return controller.close();
          }
          if (size === 0 && NO_EVENT.test(Buffer.from(value).toString())) fail(await notAStream(value, read, errors));
          take(value);
          waiting.push(value);
          if (openEvent.isUsable) break;
        }
        const [first] = waiting;
        controller.enqueue(first && waiting.length === 1 ? first : Buffer.concat(waiting));
        waiting = [];
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** The body of an error: what is behind its beginning is not read. */
function beginningOf(body: ReadableStream<Uint8Array>, watch: Watch): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let left = MAX_ERROR;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const timer = watch();
        // The status says more than how its body broke off.
        const { value } = await reader.read().catch(() => ({ value: undefined }));
        timer.cancel();
        if (value) controller.enqueue(value.subarray(0, left));
        left -= value?.length ?? left;
        if (left > 0) return;
        controller.close();
        reader.cancel().catch(() => {});
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** Makes the error. Reads the rest of the body for its message, up to `MAX_ERROR`. */
async function notAStream(
  first: Uint8Array,
  read: () => Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>,
  errors: FetchErrors,
): Promise<ModelError> {
  const chunks = [first];
  for (let size = first.length; size < MAX_ERROR; size += chunks.at(-1)?.length ?? 0) {
    const { done, value } = await read();
    if (done || value === undefined) break;
    chunks.push(value);
  }
  return errors.notAStream(Buffer.concat(chunks).toString());
}
