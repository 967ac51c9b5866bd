import type { RE2JS } from 're2js';
import { requireRuntime } from './compile.js';

/** Steps of the patterns of a value, characters times instructions: 100 ms at most. */
const MAX_STEPS = 4_000_000;
/** Steps of a match beside its characters: they bound the number of matches. */
const MATCH_STEPS = 100;

/**
 * Regular expressions whose work is proportional to the text. Those of JavaScript may take time
 * that doubles with each character, and nothing else runs meanwhile. Look-around and back
 * references cannot be matched this way.
 */
export class LinearPatterns {
  #steps = 0;
  readonly #onUnmatchable: ((source: string) => void) | undefined;

  /**
   * @param onUnmatchable receives each pattern of JavaScript that cannot be matched this way, which
   *   then matches everything. If absent, such a pattern is an error.
   */
  constructor(onUnmatchable?: (source: string) => void) {
    this.#onUnmatchable = onUnmatchable;
  }

  /** Begins with another value. */
  reset(): void {
    this.#steps = 0;
  }

  /** The engine for ajv. @throws Error that names a pattern that it cannot match. */
  readonly engine = Object.assign((source: string) => this.#compile(source), { code: 'undefined' });

  #compile(source: string): { test(text: string): boolean; toString(): string } {
    const { RE2JS } = requireRuntime('re2js') as typeof import('re2js');
    let pattern: RE2JS;
    try {
      pattern = RE2JS.compile(RE2JS.translateRegExp(source));
    } catch (error) {
      if (this.#onUnmatchable && isPattern(source)) {
        this.#onUnmatchable(source);
        return { test: () => true, toString: () => source };
      }
      throw new Error(`the pattern ${source.slice(0, 200)} is not supported: ${(error as Error).message}`, { cause: error });
    }
    const size = pattern.programSize();
    const test = (text: string) => {
      this.#steps += text.length * size + MATCH_STEPS;
      if (this.#steps > MAX_STEPS) throw new Error('texts are too long, or too many, for their patterns');
      return pattern.matcher(text).find();
    };
    return { test, toString: () => source };
  }
}

/** Whether JavaScript can compile it, which matches nothing yet. */
function isPattern(source: string): boolean {
  try {
    new RegExp(source, 'u');
    return true;
  } catch {
    return false;
  }
}
