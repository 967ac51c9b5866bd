import type { Clock } from '@plugboard/kernel';

/** A signal that is aborted after some milliseconds, unless cancelled, and with others. */
export function timeLimit(clock: Clock, milliseconds: number, message: string, ...others: AbortSignal[]) {
  const late = new AbortController();
  const timer = clock.after(milliseconds, () => late.abort(new Error(message)));
  return { signal: AbortSignal.any([late.signal, ...others]), cancel: () => timer.cancel() };
}

/** The SDKs may never remove their listener from a signal, so each request gets its own signal. */
export async function withOwnSignal<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const own = new AbortController();
  const abort = () => own.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await work(own.signal);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Waits for work that goes on when the signal, one of the caller's own, is aborted. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}
