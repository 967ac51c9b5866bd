// Runs several test files in one process, each as a test of its own: `t` of a file is not the
// process's, so its hooks, time limit and end concern that file only.
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import tap from 'tap';
import { keepCoverage } from './programs.mjs';

const PREFIX = 'tap-of:';
/** The `t` of each file, by the file's URL. */
const tests = new Map();
/** Milliseconds. */
const FILE_TIMEOUT = 300_000;
/** Milliseconds from the last test to the end of the process. */
const END_TIMEOUT = 60_000;

globalThis[Symbol.for('plugboard.tap')] = tests;
registerHooks({
  resolve(specifier, context, next) {
    const isTap = specifier === 'tap' && tests.has(context.parentURL);
    return isTap ? { url: PREFIX + context.parentURL, shortCircuit: true } : next(specifier, context);
  },
  load(url, context, next) {
    if (!url.startsWith(PREFIX)) return next(url, context);
    const file = JSON.stringify(url.slice(PREFIX.length));
    return {
      format: 'module',
      source: `export default globalThis[Symbol.for('plugboard.tap')].get(${file})`,
      shortCircuit: true,
    };
  },
});

/** @param files paths of test files. */
export async function run(files) {
  for (const file of files) {
    const { href } = pathToFileURL(file);
    await tap.test(file, { timeout: FILE_TIMEOUT }, async (t) => {
      tests.set(href, t);
      await import(href).catch((error) => {
        if (error?.code !== 'PROGRAM_MISSING' || process.env.CI) throw error;
        t.plan(0, error.message); // skipped, on a machine without what CI installs
      });
    });
  }
  keepCoverage();
  // A server that a failed test left open would keep the process until its time limit.
  setTimeout(() => {
    console.error(`Something is still open after the tests: ${process.getActiveResourcesInfo()}`);
    process.exit(1);
  }, END_TIMEOUT).unref();
}
