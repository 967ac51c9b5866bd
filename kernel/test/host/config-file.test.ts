import t from 'tap';
import { ConfigFile } from '../../src/host/configuration/config-file.js';

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

t.test('invalid YAML is reported once per place', async (t) => {
  const broken = (text: string) => {
    const file = read(text);
    t.ok(file.broken);
    return file.faults.map(({ position, message }) => `${position.line}:${position.column} ${message}`);
  };
  t.match(broken('a: { b: c\nd: 1\n'), [/^2:1 invalid YAML: /]);
  t.same(broken(`a: { key: \${X} }\nb: { key: \${Y} }\n`), [`1:12 quote a variable inside { } or [ ]: "\${NAME}"`]);
  t.same(broken('a: *nowhere\n'), ['1:4 the alias *nowhere has no anchor; write &nowhere at a value above it']);
  t.match(broken('a: !secret x\n'), [/^1:4 invalid YAML: Unresolved tag/], 'a tag that means nothing here');
  t.match(broken('a: "unclosed\n\tb: [1\n'), [/^3:1 invalid YAML: Missing closing/]);
});

t.test('JSON is YAML, and a file may be empty', async (t) => {
  t.same(read('{ "models": { "fast": { "n": 1 } } }').content, { models: { fast: { n: 1 } } });
  t.equal(read('').content, null);
  t.equal(at(read(''), ['models']), '1:1');
  t.equal(at(read('# nothing\n'), []), '1:1');
});
