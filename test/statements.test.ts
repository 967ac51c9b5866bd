/**
 * An index of the numbered statements in docs/reference, in both directions. It shows that a
 * statement has a test, not that the test is good.
 */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t from 'tap';

const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const outside = ['**/node_modules/**', '**/dist/**'];

/** A statement is a list item that begins with its number: `- **C-001** A sentence.` */
const STATEMENT = /^- \*\*([CRS]-\d{2,3}|(?:AG|AI|AP|CH|CL|MCP|OAS|OB|PA|PG|SL|TC|TG|WH)-\d{1,2})\*\* \S/gm;
const NUMBER = /\b(?:[CRS]-\d{2,3}|(?:AG|AI|AP|CH|CL|MCP|OAS|OB|PA|PG|SL|TC|TG|WH)-\d{1,2})\b/g;
/** A string on one line: the title of a test, or a piece of one. */
const STRING = /(['"`])(?:\\.|(?!\1).)*\1/g;

const pages = globSync('docs/reference/*.md', { cwd: root });
const stated = pages.flatMap((page) => Array.from(read(page).matchAll(STATEMENT), ([, number = '']) => number));
const known = new Set(stated);

const sources = globSync('{kernel,plugins/*,plugin-template,test,tools}/**/*.{ts,js,mjs}', { cwd: root, exclude: outside });

t.test('every statement has its own number', async (t) => {
  t.ok(known.size > 100);
  t.strictSame(
    stated.filter((number, at) => stated.indexOf(number) !== at),
    [],
  );
});

t.test('every number that code or a test cites is stated in docs/reference', async (t) => {
  const unknown = sources.flatMap((path) =>
    (read(path).match(NUMBER) ?? []).filter((n) => !known.has(n)).map((n) => `${path}: ${n}`),
  );
  t.strictSame(unknown, [], 'add the statement to a page of docs/reference, as CONTRIBUTING.md describes');
});

t.test('every statement has at least one test with its number in the title', async (t) => {
  const tests = sources.filter((path) => basename(path).endsWith('.test.ts'));
  const titles = tests.flatMap((path) => read(path).match(STRING) ?? []);
  const tested = new Set(titles.flatMap((title) => title.match(NUMBER) ?? []));
  t.strictSame(
    stated.filter((number) => !tested.has(number)),
    [],
  );
});
