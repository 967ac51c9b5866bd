/** The same call with the same arguments, this often in a row, is answered by an error instead of being run (reliability R-046). */
const MAX_REPEATS = 3;

/** Notices a model that calls the same tool with the same arguments again and again. */
export class RepeatGuard {
  #last = '';
  #inARow = 0;

  /** Whether this call, in the order of the model's calls, repeats the ones before it too often. */
  repeats(name: string, text: string): boolean {
    const call = `${name} ${text}`;
    this.#inARow = call === this.#last ? this.#inARow + 1 : 1;
    this.#last = call;
    return this.#inARow >= MAX_REPEATS;
  }
}
