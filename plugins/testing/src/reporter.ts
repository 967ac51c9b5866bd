/**
 * A reporter for `node --test`: `--test-reporter=@plugboard/testing/reporter`. The templates of
 * `plugboard create-plugin` use it.
 */
import { isAbsolute, resolve } from 'node:path';
import { Readable } from 'node:stream';
import type { TestEvent } from 'node:test/reporters';
import { spec } from 'node:test/reporters';

/**
 * Prints what the reporter `spec` of Node.js prints, and fails a run without tests: Node.js reports
 * success if the pattern matches no file, or only files that declare no test.
 *
 * @param events what the test runner reports.
 * @returns the lines to print.
 * @public
 */
async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let hasRun = false;
  async function* watched() {
    for await (const event of events) {
      if (event.type === 'test:pass' || event.type === 'test:fail') hasRun ||= !isFile(event.data);
      yield event;
    }
  }
  yield* Readable.from(watched()).pipe(new spec());
  if (hasRun) return;
  process.exitCode = 1;
  yield 'No test was run: no file matches, or no file declares a test.\n';
}

/** Node.js reports a file that declares no test as one test, with its path as the name. */
function isFile({ name, file }: { readonly name: string; readonly file?: string | undefined }): boolean {
  return file !== undefined && (isAbsolute(name) ? name : resolve(name)) === file;
}

export { reporter as default };
