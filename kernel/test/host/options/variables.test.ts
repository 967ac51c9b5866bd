import t from 'tap';
import { interpolate, readEnvironment } from '../../../src/host/options/variables.js';

const env = { NAME: 'value', EMPTY: '', NESTED: `\${NAME}`, PORT: '8080' };
const text = (scalar: string) => interpolate(scalar, env).value;

t.test('variables are replaced in every scalar, once', async (t) => {
  t.equal(text(`a \${NAME} b \${PORT}`), 'a value b 8080');
  t.equal(text(`\${MISSING:-fall back}`), 'fall back');
  t.equal(text(`\${EMPTY:-fall back}`), 'fall back', 'the default also replaces an empty value');
  t.equal(text(`\${NAME:-fall back}`), 'value');
  t.equal(text(`\${MISSING:-}`), '');
  t.equal(text(`$\${NAME} and \${NAME}`), `\${NAME} and value`);
  t.equal(text(`\${NESTED}`), `\${NAME}`, 'what came from a variable is not looked into');
  t.equal(text('$NAME costs 5$'), '$NAME costs 5$');
  t.same(interpolate({ list: [`\${NAME}`, 1, null, { deep: `\${PORT}` }] }, env).value, {
    list: ['value', 1, null, { deep: '8080' }],
  });
  const keyed = Object.fromEntries([[`\${NAME}`, 1]]);
  t.same(interpolate(keyed, env).value, keyed, 'variables in keys are not replaced');
});

t.test('the variable that a text came from is recorded', async (t) => {
  const { references } = interpolate({ a: `\${NAME}`, b: [`x\${MISSING:-d}`], c: `\${MISSING}`, d: `\${EMPTY}` }, env);
  t.same(references, [
    { path: ['a'], name: 'NAME', from: 'environment', text: 'value', whole: true },
    { path: ['b', 0], name: 'MISSING', from: 'default', text: 'd', whole: false },
    { path: ['c'], name: 'MISSING', from: 'unset', text: '', whole: true },
    { path: ['d'], name: 'EMPTY', from: 'empty', text: '', whole: true },
  ]);
});

t.test('malformed variable syntax is a fault', async (t) => {
  const { faults } = interpolate({ a: `\${`, b: `\${no-name}`, c: `\${A:-\${B}}` }, env);
  t.match(faults, [
    { path: ['a'], message: `"\${" starts neither \${NAME} nor \${NAME:-default}` },
    { path: ['b'], message: `write "$\${" for a literal` },
    { path: ['c'], message: `the default of \${A} contains a variable` },
  ]);
});

t.test('S-62 a value in place of a variable name does not stay in what messages quote', async (t) => {
  t.equal(text(`\${sk-secret-1}`), `\${…}`);
  t.equal(text(`http://\${sk-secret-2`), `http://\${…}`);
  t.notMatch(text(`\${A:-\${sk-secret-3}}`), 'secret');
});

t.test('a .env file sets only unset variables', async (t) => {
  const dir = t.testdir({ '.env': 'NAME=from file\nOTHER="two words" # comment\nEMPTY=from file\n' });
  t.same(readEnvironment(dir, { NAME: 'set', EMPTY: '' }), { NAME: 'set', OTHER: 'two words', EMPTY: '' });
  t.same(readEnvironment(t.testdir({}), { NAME: 'set' }), { NAME: 'set' });
  t.same(
    readEnvironment(t.testdir({ '.env': '\ufeffNAME=a\r\nOTHER=b\r\n' }), {}),
    { NAME: 'a', OTHER: 'b' },
    'as Windows writes it',
  );
  t.throws(
    () => readEnvironment(t.testdir({ '.env': {} }), {}),
    { name: 'ConfigError', message: '.env: the file cannot be read (EISDIR)' },
    'an unset variable is not a secret',
  );
});
