// Runs several test files in one process, each as a test of its own: `t` of a file is not the
// process's, so its hooks, time limit and end concern that file only.
import { createRequire, registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import tap from 'tap';

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

// tap loads itself into every process that a test starts. That takes 0.6 s of a processor, and the
// start of the program 0.3 s. Node.js writes the same coverage of the program in 0.1 s.
const LOADER = /"?--import=[^ "]*@tapjs\/processinfo[^ "]*"?/;
const PROGRAM = /\/plugins\/cli\/bin\/plugboard\.js$/;
const coverage = process.env._TAPJS_PROCESSINFO_COVERAGE_ === '1' ? resolve('.tap/coverage') : undefined;
const requireOfTap = createRequire(createRequire(import.meta.url).resolve('tap'));
requireOfTap('process-on-spawn').addListener((child) => {
  const { NODE_OPTIONS = '', ...env } = child.env;
  const options = NODE_OPTIONS.replace(LOADER, '').trim();
  if (options !== '') env.NODE_OPTIONS = options;
  if (coverage !== undefined && PROGRAM.test(child.args[1])) env.NODE_V8_COVERAGE = coverage;
  child.env = env;
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
  // A server that a failed test left open would keep the process until its time limit.
  setTimeout(() => {
    console.error(`Something is still open after the tests: ${process.getActiveResourcesInfo()}`);
    process.exit(1);
  }, END_TIMEOUT).unref();
}
