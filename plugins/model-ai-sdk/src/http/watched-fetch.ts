import { type Clock, ModelError } from '@plugboard/kernel';

/** Bytes of one answer. */
const MAX_ANSWER = 64 * 2 ** 20;

interface FetchErrors {
  idle(): ModelError;
  redirect(status: number): ModelError;
  brokenOff(cause: unknown): ModelError;
  tooLarge(limit: number): ModelError;
}

/**
 * A `fetch` for provider packages that fails when no byte arrives for a while, does not
 * follow redirects, which would send the key to another server, and limits the size of answers.
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
      return new Response(watchedBody(response.body, watch, errors), { status, statusText, headers });
    } catch (error) {
      throw idle.signal.aborted ? idle.signal.reason : error;
    } finally {
      timer.cancel();
    }
  };
}

/** The time without a byte counts only while somebody waits for one. */
function watchedBody(body: ReadableStream<Uint8Array>, watch: () => { cancel(): void }, errors: FetchErrors) {
  const reader = body.getReader();
  let size = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const timer = watch();
        try {
          const { done, value } = await reader.read().catch((error: unknown) => {
            throw error instanceof ModelError ? error : errors.brokenOff(error);
          });
          if (done) return controller.close();
          size += value.length;
          if (size > MAX_ANSWER) {
            reader.cancel().catch(() => {});
            throw errors.tooLarge(MAX_ANSWER);
          }
          controller.enqueue(value);
        } finally {
          timer.cancel();
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
