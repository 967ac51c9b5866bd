import { createHash } from 'node:crypto';

/**
 * From this many identical calls in a row on, a call gets an error instead of being run.
 */
const MAX_REPEATS = 3;

/** A call, and how often it was made in a row. */
export interface RepeatedCall {
  readonly digest: string;
  readonly count: number;
}

/** Detects a model that repeats the same tool call with the same arguments. */
export class RepeatGuard {
  #last: RepeatedCall;

  /** @param last the last call of the turn that goes on. */
  constructor(last: RepeatedCall = { digest: '', count: 0 }) {
    this.#last = last;
  }

  get last(): RepeatedCall {
    return this.#last;
  }

  /** Whether the call repeats the previous ones too often. Must see the calls in order. */
  repeats(name: string, text: string): boolean {
    const digest = createHash('sha256').update(`${name} ${text}`).digest('base64');
    this.#last = { digest, count: digest === this.#last.digest ? this.#last.count + 1 : 1 };
    return this.#last.count >= MAX_REPEATS;
  }
}
