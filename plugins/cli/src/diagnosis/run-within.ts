import { Script } from 'node:vm';

/** The global under which the script finds what it calls. */
const CALL = Symbol.for('plugboard.run-within');

/** Whether a debugger may hold the process for longer than any limit. */
const isDebugged = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some((option) => option.includes('inspect'));

let script: Script | undefined;

/**
 * Runs synchronous code, and ends it from outside if it takes longer than the limit: an endless
 * loop would otherwise stop the process without a word.
 * @param limit milliseconds.
 * @returns whether it ended by itself.
 * @throws what the code throws.
 */
export function runWithin(limit: number, run: () => void): boolean {
  if (isDebugged) {
    run();
    return true;
  }
  script ??= new Script("globalThis[Symbol.for('plugboard.run-within')]()");
  const globals = globalThis as { [CALL]?: (() => void) | undefined };
  const outer = globals[CALL];
  globals[CALL] = run;
  try {
    script.runInThisContext({ timeout: limit });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException | undefined)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return false;
    throw error;
  } finally {
    globals[CALL] = outer;
  }
}
