/**
 * One behaviour that a contract asks for, for any test runner. With tap:
 *
 * ```ts
 * for (const c of toolSourceContract(() => new DiceTool(…))) t.test(c.name, c.run);
 * ```
 *
 * With node:test: `test(c.name, () => c.run())`.
 */
export interface ContractCase {
  /** The behaviour, as half a sentence whose subject is the thing under test. */
  readonly name: string;
  /** Rejects with what is wrong, mostly an `AssertionError`. */
  readonly run: () => Promise<void>;
}

/** Real time, because what a contract waits for here must come without anyone's help. Far more than anything needs: it ends a test that hangs. */
const PATIENCE = 10_000;

/** Waits for what must happen soon. @throws where it has not happened after ten seconds, saying what was waited for. */
export async function soon<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${PATIENCE / 1000} seconds`)), PATIENCE);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The value with everything in it frozen, so that whoever changes what it was only lent throws. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const key of Reflect.ownKeys(value)) deepFreeze(Reflect.get(value, key));
  }
  return value;
}
