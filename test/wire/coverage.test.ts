import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import t from 'tap';

/** The statements of the wire contract, from the first to the last of each run of numbers. */
const STATEMENTS = [
  [1, 15], // transport, routing, headers
  [20, 45], // request parsing and validation
  [50, 62], // message forms
  [65, 71], // model (agent) resolution
  [75, 84], // whole answers
  [90, 112], // streams
  [120, 136], // sessions
  [140, 149], // credentials, browsers
  [155, 160], // models, health
  [165, 171], // errors, retries
  [180, 183], // real clients
] as const;

const root = resolve(import.meta.dirname, '../..');

/** The statements that tests are named after: a name is a text in quotes that begins with numbers. */
function namedIn(path: string): readonly string[] {
  const names = readFileSync(resolve(root, path), 'utf8').match(/['"`](?:[CRS]-\d{3} )+/g) ?? [];
  return names.flatMap((name) => name.match(/C-\d{3}/g) ?? []);
}

t.test('every statement of the wire contract is pinned on a whole server, by a test of that number', async (t) => {
  const named = new Set(globSync('test/**/*.test.ts', { cwd: root }).flatMap(namedIn));
  const statements = STATEMENTS.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => `C-${String(first + i).padStart(3, '0')}`),
  );
  t.strictSame(
    statements.filter((statement) => !named.has(statement)),
    [],
  );
});
