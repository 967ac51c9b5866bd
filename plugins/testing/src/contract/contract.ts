import { inspect } from 'node:util';

/**
 * Declares a test of a runner: `t.test` of tap, `test` of node:test or vitest, `it` of mocha.
 * `run` takes no argument and rejects if the test fails.
 *
 * @experimental
 */
export type DeclareTest = (name: string, run: () => Promise<void>) => unknown;

/** A promise of a contract that an implementation does not keep. @experimental */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
  readonly code = 'BROKEN_PROMISE';
}

/** The promises of one interface, declared as tests by a suite. @experimental */
export class Contract {
  readonly #subject: string;
  readonly #test: DeclareTest;

  /** @param subject the implementation in messages: `a tool source`. */
  constructor(subject: string, test: DeclareTest) {
    this.#subject = subject;
    this.#test = test;
  }

  /**
   * Declares the test of a promise. It fails with a `BrokenPromise`.
   *
   * @param promise a sentence without its subject: `returns the same tools again`.
   * @param source where the promise is documented, for example `ToolSource 3`: statement 3 in the
   * doc comment of `ToolSource`.
   * @param check throws if the promise is broken.
   */
  add(promise: string, source: string, check: () => Promise<void>): void {
    const test = this.#test; // a function of the runner: without this contract as its `this`
    test(promise, () =>
      check().catch((error: unknown) => {
        throw this.#broken(promise, source, error);
      }),
    );
  }

  #broken(promise: string, source: string, cause: unknown): BrokenPromise {
    const found = cause instanceof Error ? cause.message : `it threw ${inspect(cause)}, which is not an Error`;
    return new BrokenPromise(`${this.#subject} ${promise}.\nFound: ${found}\nDocumented at: ${documented(source)}`, { cause });
  }
}

/** `ToolSource 3` → `ToolSource, statement 3, in the types of @plugboard/kernel`. */
function documented(source: string): string {
  const [, name, statement] = /^([A-Z][\w.]*)(?: (\d+))?$/.exec(source) ?? [];
  if (name === undefined) return source;
  return `${name}${statement === undefined ? '' : `, statement ${statement}`}, in the types of @plugboard/kernel`;
}
