/**
 * From this many identical calls in a row on, a call gets an error instead of being run.
 */
const MAX_REPEATS = 3;

/** Detects a model that repeats the same tool call with the same arguments. */
export class RepeatGuard {
  #last = '';
  #consecutive = 0;

  /** Whether the call repeats the previous ones too often. Must see the calls in order. */
  repeats(name: string, text: string): boolean {
    const call = `${name} ${text}`;
    this.#consecutive = call === this.#last ? this.#consecutive + 1 : 1;
    this.#last = call;
    return this.#consecutive >= MAX_REPEATS;
  }
}
