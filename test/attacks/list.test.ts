import { existsSync, globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import t from 'tap';

/** How many attacks there are to withstand: S-01 to S-32. */
const ATTACKS = 32;

/** Attacks upon what does not exist yet, by the plugin that will bring it. */
const NOT_YET: Readonly<Record<string, string>> = {
  'S-07': 'tool-http', // tools that fetch what a model names
  'S-27': 'transport-playground', // a page that shows what models and tools say
};

/** Attacks that have tests, and will need others with the plugin that brings one surface more. */
const IN_PART: Readonly<Record<string, string>> = {
  'S-08': 'transport-websocket', // the upgrade itself is refused as any request is; behind it there is nothing yet
  'S-12': 'transport-websocket', // 4401 on a socket that is open when its token is revoked
  'S-17': 'transport-websocket',
  'S-22': 'transport-websocket', // fragments
  'S-26': 'transport-websocket',
};

const root = resolve(import.meta.dirname, '../..');

/** The numbers in the titles of a file's tests. */
function titled(path: string): readonly string[] {
  const tests = readFileSync(resolve(root, path), 'utf8').matchAll(/\btest\(\s*(['"`])((?:\\.|(?!\1).)*)\1/gs);
  return [...tests].flatMap(([, , title = '']) => title.match(/\bS-\d{2}\b/g) ?? []);
}

const files = globSync('{kernel,plugins/*,test}/**/*.test.ts', { cwd: root, exclude: (path) => path.includes('node_modules') });
const withTests = new Set(files.flatMap(titled));

t.test('every attack has a test of its number, but for those upon what does not exist yet', async (t) => {
  const attacks = Array.from({ length: ATTACKS }, (_, at) => `S-${String(at + 1).padStart(2, '0')}`);
  t.strictSame(
    attacks.filter((attack) => !withTests.has(attack)),
    Object.keys(NOT_YET),
  );
  t.strictSame(
    [...withTests].filter((attack) => !attacks.includes(attack)),
    [],
    'and no test has a number that there is not',
  );
});

t.test('what attacks wait for is not there: whoever brings it brings their tests, and takes them off the tables', async (t) => {
  for (const [attack, plugin] of Object.entries({ ...NOT_YET, ...IN_PART })) {
    t.notOk(existsSync(resolve(root, 'plugins', plugin)), `${attack} waits for ${plugin}`);
  }
});
