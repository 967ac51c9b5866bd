import type { Clock } from '../base/ambient.js';
import { fault, HostError } from '../base/errors.js';

/** A function exceeded its time limit. */
export class TimeLimitError extends HostError {
  override readonly name = 'TimeLimitError';
  readonly seconds: number;

  /** @param limit in milliseconds. */
  constructor(limit: number) {
    const { code, message } = fault('TIME_LIMIT', limit / 1000);
    super(code, message);
    this.seconds = limit / 1000;
  }
}

/**
 * Runs a function under a time limit in milliseconds. Its signal is aborted when the limit is over,
 * when it fails, and when `outer` is aborted. Then this rejects at once, and a function that does
 * not end is abandoned.
 *
 * @param grace milliseconds after the limit in which the function may still end.
 */
export async function withinLimit(
  run: (signal: AbortSignal) => Promise<void> | void,
  limit: number,
  clock: Clock,
  outer?: AbortSignal,
  grace = 0,
): Promise<void> {
  const controller = new AbortController();
  const cut = Promise.withResolvers<never>();
  const end = (reason: unknown) => {
    controller.abort(reason);
    cut.reject(reason);
  };
  let timer = clock.after(limit, () => {
    const late = new TimeLimitError(limit);
    if (grace === 0) return end(late);
    controller.abort(late);
    timer = clock.after(grace, () => cut.reject(late));
  });
  const onOuter = () => end(outer?.reason);
  outer?.addEventListener('abort', onOuter, { once: true });
  try {
    if (outer?.aborted) throw outer.reason;
    await Promise.race([run(controller.signal), cut.promise]);
  } catch (error) {
    controller.abort(error);
    throw error;
  } finally {
    timer.cancel();
    outer?.removeEventListener('abort', onOuter);
  }
}
