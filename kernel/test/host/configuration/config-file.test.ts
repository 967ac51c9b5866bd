import t from 'tap';
import { ConfigFile } from '../../../src/host/configuration/config-file.js';

const read = (text: string) => new ConfigFile('/etc/app/plugboard.yaml', 'plugboard.yaml', text);
const at = (file: ConfigFile, path: (string | number)[], of: 'key' | 'value' = 'value') => {
  const { line, column } = file.position(path, of);
  return `${line}:${column}`;
};

t.test('keys and values are found by line and column', async (t) => {
  const file = read(
    'models:\n  fast: { use: openai, model: gpt }\ntools:\n  files:\n    args:\n      - one\n      - two\n  empty:\n',
  );
  t.equal(at(file, ['models', 'fast'], 'key'), '2:3');
  t.equal(at(file, ['models', 'fast'], 'value'), '2:9');
  t.equal(at(file, ['models', 'fast', 'model'], 'key'), '2:24');
  t.equal(at(file, ['tools', 'files', 'args', 1]), '7:9');
  t.equal(at(file, ['tools', 'empty']), '8:3', 'the position of an empty value is that of its key');
  t.equal(at(file, ['models', 'fast', 'missing', 'deeper']), '2:9', 'the position of a missing value is that of its parent');
  t.equal(at(file, ['nowhere']), '1:1');
  t.equal(file.folder, '/etc/app');
});

t.test('anchors and merges lead to the place where the value was written', async (t) => {
  const file = read('a: &a { use: x, n: 1 }\nb: *a\nc:\n  <<: *a\n  n: 2\nd: { <<: [*a, { m: 3 }] }\n');
  t.same(file.content, { a: { use: 'x', n: 1 }, b: { use: 'x', n: 1 }, c: { use: 'x', n: 2 }, d: { use: 'x', n: 1, m: 3 } });
  t.equal(at(file, ['b', 'n']), '1:20');
  t.equal(at(file, ['c', 'n']), '5:6');
  t.equal(at(file, ['c', 'use']), '1:14');
  t.equal(at(file, ['d', 'm']), '6:20');
});

t.test('a duplicate key is a fault, and the rest is read', async (t) => {
  const file = read('models:\n  fast: {}\n  fast: {}\ntools: {}\n');
  t.match(file.faults, [
    { path: ['models', 'fast'], position: { line: 3, column: 3 }, code: 'YAML_DUPLICATE_KEY', message: /^this key occurs twice/ },
  ]);
  t.equal(file.faults.length, 1);
  t.equal(file.broken, false);
  t.ok(file.content);
});

/** The faults of a text that cannot be read. */
const broken = (text: string) => {
  const file = read(text);
  t.ok(file.broken, text);
  return file.faults.map(
    ({ position, message }) => `${position.line}:${position.column} ${message.replace(/^invalid YAML: /, '')}`,
  );
};

t.test('a syntax error is reported once, with its cure', async (t) => {
  const missingColon = '": " is missing after the key; write a text of several lines in a block, indented below "key: |"';
  const colon = (key: string) =>
    `a text that contains ": " must be in quotes or in a block ("${key}: |"); another key needs its own line`;
  const below = (key: string) =>
    `a key follows, indented below this text; align it with "${key}", or write the text in a block ("${key}: |")`;
  const closing = 'is missing, or indented less than the key';
  const inside = 'inside { } or [ ], a text that contains ": " must be in quotes, and a comma must separate entries';
  const variable = `quote a variable inside { } or [ ]: "\${NAME}"`;
  const cases: [text: string, fault: string][] = [
    ['agents:\n  a:\n    system: You answer: this: that\n    tools: []\n', `3:13 ${colon('system')}`],
    ['a:\n  - b: c: d\n', `2:8 ${colon('b')}`],
    ['a: { system: You answer: x }\n', `1:14 ${inside}`],
    ['a: b # c: d\n   e: f\n', '2:1 the line is not aligned with the other keys of its map; indent it as they are'],
    ['agents:\n  a:\n  model: x\n    tools: []\n', `3:10 ${below('model')}`],
    ['system: You are\n  helpful: yes\n', `1:9 ${below('system')}`],
    ['a:\n    b: 1\n   c: 1\n   d: 1\n', '3:1 the line is not aligned with the other keys of its map; indent it as they are'],
    ['a:\n  - b\n  c\n', '3:1 a list item must start with "- "'],
    ['a: - b\n', '1:4 a list item ("- ") must start on a line below its key'],
    ['a:\n  - b\n - c\n', '3:1 a map cannot contain list items ("- "); align this one with the items of its list'],
    ['a:\n  b: c\n  - d\n', '3:1 a map cannot contain list items ("- "); align this one with the items of its list'],
    ['agents\n  a:\n    model: x\ntools: {}\n', `1:1 ${missingColon}`],
    ['a:\n  b: c\n  model fast\n', `3:3 ${missingColon}`],
    ['a:\n  model:fast\n  b: c\n', '2:3 a space is missing after the colon'],
    ['a:\n  b: c\n  model:fast\n', '3:3 a space is missing after the colon'],
    ['a:\n\tb:\n\t\tc: x\n\t\td: y\n', '2:1 a tab indents this line; indent with spaces'],
    ['a: "unclosed\n\tb: [1\n', `1:4 the closing '"' is missing`],
    ["a: 'unclosed\nb: 1\n", `1:4 the closing "'" is missing`],
    ['a: { b: c\nd: 1\n', `1:4 the closing "}" ${closing}`],
    ['a: { b: [c\n}\n', `1:9 the closing "]" ${closing}`],
    ['{ "a": 1', '1:1 the closing "}" is missing'],
    ['{"a": 1 "b": 2}\n', `1:7 ${inside}`],
    ['{"a" 1}\n', '1:6 "," or ": " is missing between two entries of { } or [ ]'],
    ['a: {b: c}}\n', '1:10 "}" closes nothing; remove it'],
    [
      "a: 'don't'\nb: 1\n",
      "1:9 text follows a closing quote; close the quote before it, or write '' for a quote inside single quotes",
    ],
    [
      'a: "say "hi""\n',
      '1:10 text follows a closing quote; close the quote before it, or write \\" for a quote inside double quotes',
    ],
    ['a: "C:\\Users"\n', '1:7 a backslash in double quotes starts an escape; write "\\\\" for a backslash, or use single quotes'],
    ['a: "x"# y\n', '1:7 a space is missing before the "#" of the comment'],
    ['a: | You are\n  b\n', '1:6 the text of a block must start on the line after "|"'],
    ['a: @b/c\n', '1:4 a text that starts with "@" must be in quotes'],
    ['a: [*]\n', '1:5 a text that starts with "*" must be in quotes'],
    ['a: !secret x\n', '1:4 this tag is unknown; remove it, or put a text that starts with "!" in quotes'],
    ['a: !!! x\n', '1:4 this tag is unknown; remove it, or put a text that starts with "!" in quotes'],
    ['a: *nowhere\n', '1:4 the alias *nowhere has no anchor; write &nowhere at a value above it, or put the text in quotes'],
    [`a: { key: \${X} }\nb: { key: \${Y} }\n`, `1:12 ${variable}`],
    [`a: [\${X:-y}]\n`, `1:6 ${variable}`],
    ['a: 1\n---\nb: 2\n', '2:1 "---" starts a second document; the file must be one'],
    ['a: [b,, c]\n', '1:7 Unexpected , in flow sequence'],
    ['%TAG\na: 1\n', '1:1 %TAG directive should contain exactly two parts'],
  ];
  for (const [text, fault] of cases) t.same(broken(text), [fault], text);
  t.match(read('a: @b').faults, [{ code: 'YAML_INVALID', message: /^invalid YAML: a text/ }]);
});

t.test('errors are reported together up to the first that changes the structure', async (t) => {
  t.match(broken('a: 1\na: @x\nb: c: d\nc: 1\ne: *u\nf: [*]\ng:\n  h: 1\n i: 1\nj: @x\nj: *u\n'), [
    /^2:1 this key occurs twice/,
    /^2:4 a text that starts with "@"/,
    /^3:4 a text that contains ": "/,
    /^6:5 a text that starts with "\*"/,
    /^9:1 the line is not aligned/,
    /^5:4 the alias \*u has no anchor/,
  ]);
});

t.test('a closing bracket may be aligned with its key', async (t) => {
  const file = read('transports: {\n  http: {\n  }\n}\n');
  t.same([file.content, file.faults], [{ transports: { http: {} } }, []]);
});

t.test('JSON is YAML, and a file may be empty', async (t) => {
  t.same(read('{ "models": { "fast": { "n": 1 } } }').content, { models: { fast: { n: 1 } } });
  t.equal(read('').content, null);
  t.equal(at(read(''), ['models']), '1:1');
  t.equal(at(read('# nothing\n'), []), '1:1');
});
