/**
 * A list is not searched inside a loop over the same list: that takes time with the square of its
 * length. Keep an index, a Map or a Set, that is filled before the loop.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import ts from 'typescript';

const root = join(import.meta.dirname, '../..');

/** Methods that look at many elements of a list. */
const SEARCHES = new Set(
  [
    'find findLast findIndex findLastIndex indexOf lastIndexOf includes filter some every slice toSpliced',
    'toReversed map reduce',
  ].flatMap((names) => names.split(' ')),
);
/** Methods that call a function for each element. */
const LOOPS = new Set('map flatMap filter forEach some every find findLast findIndex findLastIndex reduce'.split(' '));

/** What may stay, with the reason. */
const ALLOWED: Readonly<Record<string, string>> = {
  'plugins/auth-bearer/src/check-config.ts: tokens.slice': 'of the configuration',
  'plugins/model-ai-sdk/src/provider/load-provider.ts: names.findIndex': 'exports of a package',
  'plugins/model-openai/src/answer/tool-arguments.ts: grown.slice': 'at most 32 (MAX_JOINED)',
  'plugins/testing/src/suites/command.ts: letters.indexOf': 'options of a command',
  'plugins/testing/src/suites/tool-source.ts: names.indexOf': 'tools in a test',
};

/** Not lists, but what holds functions. */
const GLOBALS = new Set(['Object', 'Array', 'JSON', 'Math', 'Promise']);

/** The list that an expression loops over: `list` of `list.entries()`, `this.#calls ?? []`. */
function listOf(node: ts.Expression, source: ts.SourceFile): string {
  if (ts.isBinaryExpression(node)) return listOf(node.left, source);
  if (ts.isParenthesizedExpression(node)) return listOf(node.expression, source);
  if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
    const { name, expression } = node.expression;
    if (['entries', 'keys', 'values', 'toReversed'].includes(name.text)) return listOf(expression, source);
  }
  return node.getText(source).replace(/[\s?!]/g, '');
}

/** The searches of a file, as `file: list.method`. */
export function searchesIn(file: string, text: string): readonly string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node, loops: readonly string[]): void => {
    if (ts.isForOfStatement(node)) {
      visit(node.expression, loops);
      visit(node.statement, [...loops, listOf(node.expression, source)]);
      return;
    }
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { name, expression } = node.expression;
      const list = listOf(expression, source);
      if (SEARCHES.has(name.text) && !GLOBALS.has(list) && loops.includes(list)) found.push(`${file}: ${list}.${name.text}`);
      visit(node.expression, loops);
      for (const argument of node.arguments) {
        const isBody = LOOPS.has(name.text) && (ts.isArrowFunction(argument) || ts.isFunctionExpression(argument));
        visit(argument, isBody ? [...loops, list] : loops);
      }
      return;
    }
    ts.forEachChild(node, (child) => visit(child, loops));
  };
  visit(source, []);
  return found;
}

t.test('no list is searched inside a loop over the same list', async (t) => {
  const files = globSync('{kernel,plugins/*,plugin-template/*}/src/**/*.ts', { cwd: root });
  t.ok(files.length > 500);
  const found = files.flatMap((file) => searchesIn(file, readFileSync(join(root, file), 'utf8')));
  t.strictSame(
    found.filter((one) => ALLOWED[one] === undefined),
    [],
    'keep a Map or a Set',
  );
  t.strictSame(
    Object.keys(ALLOWED).filter((one) => !found.includes(one)),
    [],
    'reasons for what is no longer there',
  );
});

t.test('a search is found in every kind of loop', async (t) => {
  const loops = [
    'for (const a of list) list.find(() => a);',
    'for (const [i, a] of list.entries()) if (a) { use(list.slice(0, i)); }',
    'list.map((a) => list.indexOf(a));',
    'list?.flatMap((a) => [1].map(() => list.filter((b) => b === a)));',
    'for (const a of this.#calls ?? []) this.#calls.includes(a);',
  ];
  for (const loop of loops) t.equal(searchesIn('f', loop).length, 1, loop);
  t.strictSame(searchesIn('f', 'for (const a of list) other.find(() => a); list.find((a) => a);'), []);
});
