import { type Clock, ModelError } from '@plugboard/kernel';

/** Bytes of one answer. */
const MAX_ANSWER = 64 * 2 ** 20;

/** Bytes of an answer that is not a stream. */
const MAX_ERROR = 65_536;
/** How JSON and HTML begin. No event of a stream begins like this. */
const NO_EVENT = /^\s*[{[<]/;

interface FetchErrors {
  idle(): ModelError;
  redirect(status: number): ModelError;
  brokenOff(cause: unknown): ModelError;
  tooLarge(limit: number): ModelError;
  notAStream(text: string): ModelError;
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
      const body = watchedBody(response.body, watch, errors, response.ok);
      return new Response(body, { status, statusText, headers });
    } catch (error) {
      throw idle.signal.aborted ? idle.signal.reason : error;
    } finally {
      timer.cancel();
    }
  };
}

/**
 * The time without a byte counts only while somebody waits for one.
 *
 * @param isStream whether the body must be a stream of events, and neither JSON nor HTML.
 */
function watchedBody(
  body: ReadableStream<Uint8Array>,
  watch: () => { cancel(): void },
  errors: FetchErrors,
  isStream: boolean,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let size = 0;
  const read = async () => {
    const timer = watch();
    try {
      return await reader.read();
    } catch (error) {
      throw error instanceof ModelError ? error : errors.brokenOff(error);
    } finally {
      timer.cancel();
    }
  };
  const fail = (error: ModelError) => {
    reader.cancel().catch(() => {});
    throw error;
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await read();
        if (done) return controller.close();
        if (isStream && size === 0 && NO_EVENT.test(Buffer.from(value).toString())) fail(await notAStream(value, read, errors));
        size += value.length;
        if (size > MAX_ANSWER) fail(errors.tooLarge(MAX_ANSWER));
        controller.enqueue(value);
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
