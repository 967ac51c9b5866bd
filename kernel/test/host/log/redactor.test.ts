import t from 'tap';
import { createRedactor } from '../../../src/host/log/redactor.js';

t.test('values are removed everywhere, the longest first', async (t) => {
  const redact = createRedactor({ values: ['hunter2', 'hunter2-longer', 'a.*b'] });
  t.equal(redact('hunter2-longer, xhunter2x and a.*b, not aXXb'), '[redacted], x[redacted]x and [redacted], not aXXb');
});

t.test('short values stay, up to a configurable length', async (t) => {
  t.equal(createRedactor({ values: ['on', 'true'] })('on and true'), 'on and [redacted]');
  t.equal(createRedactor({ values: ['true', 'secret'], minLength: 6 })('true secret'), 'true [redacted]');
});

t.test('a value is also found escaped as JSON and line by line', async (t) => {
  const value = 'first "line"\nsecond line';
  const redact = createRedactor({ values: [value] });
  t.same(JSON.parse(redact(JSON.stringify({ value, more: `>${value}<` }))), { value: '[redacted]', more: '>[redacted]<' });
  t.equal(redact('it printed: second line'), 'it printed: [redacted]');
});

t.test('patterns match credentials that are not in the configuration', async (t) => {
  const redact = createRedactor({ patterns: [/key-(\d+)/, /key-(\d+)/] });
  t.equal(redact('key-12 key-x'), '[redacted] key-x');
});

t.test('the strings of a field are removed from JSON, which stays valid', async (t) => {
  const redact = createRedactor({ fields: ['cookie', 'a.b'] });
  const line = JSON.stringify({ cookie: 'a "b" c', deep: [{ cookie: ['x]', 'y'] }], 'a.b': 'z', aXb: 'stays', cookies: 1 });
  t.same(JSON.parse(redact(line)), {
    cookie: '[redacted]',
    deep: [{ cookie: '[redacted]' }],
    'a.b': '[redacted]',
    aXb: 'stays',
    cookies: 1,
  });
});

t.test('without values and patterns a text is unchanged', async (t) => {
  t.equal(createRedactor({})('"apiKey":"x"'), '"apiKey":"x"');
});
