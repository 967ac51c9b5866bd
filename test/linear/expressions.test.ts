/**
 * The work of every regular expression grows with its text and not faster: twice the text takes at
 * most 2.6 times as long. One that is not linear searches a line (`matchLine`), or is listed here.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import ts from 'typescript';
import { faultOfDoubling } from './doubling.js';

/** Characters of the smaller size. Work with the third power of a text shows at the first. */
const SIZES = [500, 8_000];

const root = join(import.meta.dirname, '../..');
const SOURCES = ['kernel/src/**/*.ts', 'plugins/*/src/**/*.ts', 'plugins/transport-playground/page/**/*.js'];
const QUANTIFIER = /[*+]|\{\d+,\d*\}/;

/** Expressions that only see short texts, or texts of the operator, with the reason. */
const SHORT: Readonly<Record<string, string>> = {
  'kernel/src/host/base/place.ts: /(?:^|[\\s(])(file:\\/\\/[^\\s()]+?|(?:\\/|[A-Za-z]:\\\\)[^()\\n]*?):(\\d+)(?::(\\d+))?\\)?$/':
    'lines of at most 1,000 characters',
  'plugins/model-ai-sdk/src/provider/probe.ts: / Please [^.]*:$/': 'sentences of an installed package',
  'plugins/testing/src/plugin/plugin-contract.ts: /<!-- settings -->\\n([\\s\\S]*?)\\n<!-- \\/settings -->/':
    'the README of the plugin under test',
  'plugins/tool-mcp/src/process/secrets.ts: /(?:token|secret|passw|credential|api[-_]?key|auth)[\\w-]*(?:=(.+))?$/i':
    'arguments of a command in the configuration',
};

/** The expressions of a file with a quantifier. */
function expressionsIn(file: string, text: string): readonly string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node) && QUANTIFIER.test(node.text)) found.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** What an expression asks for, piece by piece: `at`, ` `, `1` and `)` of `/^at\s+\d+\)/`. */
function piecesOf(source: string): readonly string[] {
  const sets: Readonly<Record<string, string>> = { s: ' ', S: 'a', d: '1', w: 'a', n: '\n', t: '\t', b: '', p: 'a', P: ' ' };
  const plain = source
    .replaceAll(/\[\^[^\]]*\]/g, '\0')
    .replaceAll(/\\([a-zA-Z])(?:\{\w+\})?/g, (_, letter: string) => `\0${sets[letter] ?? ''}\0`)
    .replaceAll(/\\(.)/g, '$1')
    .replaceAll(/\(\?(?:[:=!]|<[=!]|<\w+>)|\{\d*,?\d*\}|[()[\]^$.*+?|]/g, '\0');
  return plain.split('\0').filter((piece) => piece !== '');
}

/** Texts that an expression may search for long: much of one thing, and never its end. */
function* textsFor(source: string, n: number): Iterable<string> {
  const pieces = piecesOf(source);
  const beginnings = new Set(['', pieces[0] ?? '', pieces.slice(0, -1).join('')]);
  const common = [
    ' ',
    '\n',
    '\t',
    'a',
    'A',
    '0',
    '-',
    '_',
    '.',
    '/',
    '\\',
    ':',
    ',',
    '*',
    '`',
    '"',
    "'",
    '[',
    '(',
    '{',
    '<',
    'a ',
    '1.',
    ' \n',
  ];
  for (const pump of new Set([...common, ...pieces, ...pieces.map((piece) => ` ${piece}`), pieces.join('')]))
    if (pump !== '') for (const beginning of beginnings) yield `${beginning}${pump.repeat(n / pump.length)}\u0001`;
}

/** @returns what is wrong with an expression: undefined if its work grows with its text. */
async function faultOf(expression: string, sizes = SIZES, attempts?: number): Promise<string | undefined> {
  const end = expression.lastIndexOf('/');
  const source = expression.slice(1, end);
  const pattern = new RegExp(source, [...new Set(`${expression.slice(end + 1)}g`)].join(''));
  for (const n of sizes) {
    for (const text of textsFor(source, 2 * n)) {
      const shown = `${JSON.stringify(text.slice(0, 12))}…`;
      const half = `${text.slice(0, n)}\u0001`;
      const run = (length: number) => () => (length === n ? half : text).replace(pattern, '');
      const fault = await faultOfDoubling(run, n, attempts);
      if (fault !== undefined) return `${shown}: ${fault}`;
    }
  }
  return undefined;
}

t.test('S-65 twice the text takes an expression twice the time', async (t) => {
  const found = new Map<string, string>();
  for (const file of SOURCES.flatMap((glob) => globSync(glob, { cwd: root })))
    for (const expression of expressionsIn(file, readFileSync(join(root, file), 'utf8')))
      found.set(`${file}: ${expression}`, expression);
  t.ok(found.size > 150, `${found.size} expressions`);
  const faults: string[] = [];
  for (const [name, expression] of found) {
    if (SHORT[name] !== undefined) continue;
    const fault = await faultOf(expression);
    if (fault !== undefined) faults.push(`${name} ${fault}`);
  }
  t.strictSame(faults, [], 'make it unambiguous, search a line with matchLine, or list it with a reason');
  t.strictSame(
    Object.keys(SHORT).filter((name) => !found.has(name)),
    [],
    'reasons for what is no longer there',
  );
});

t.test('expressions that are not linear are found', async (t) => {
  t.strictSame(expressionsIn('f', 'const a = [/a+$/, /b/];'), ['/a+$/']);
  // It takes more than the time in all: on a busy machine a ratio may be good by chance.
  t.match(await faultOf('/ +$/', [7_000], 3), /ms for/);
  t.equal(await faultOf('/^a+$/'), undefined);
});
