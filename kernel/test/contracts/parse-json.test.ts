import t from 'tap';
import { parseJson } from '../../src/contracts/index.js';

t.test('S-29 parses JSON without any key that would set a prototype', async (t) => {
  const text =
    '{"a":[{"__proto__":{"admin":true},"b":{"\\u005f_proto__":1,"c":2}}],"__proto__":{"admin":true},"constructor":{"x":1}}';
  const value = parseJson(text);
  t.strictSame(JSON.stringify(value), '{"a":[{"b":{"c":2}}],"constructor":{"x":1}}');
  t.equal(Reflect.get(Object.assign({}, value), 'admin'), undefined);
  t.strictSame(parseJson('"__proto__"'), '__proto__');
  t.strictSame(parseJson('null'), null);
  t.throws(() => parseJson('{"a":'), SyntaxError);
  const deep = `${'['.repeat(500)}{"__proto__":1}${']'.repeat(500)}`;
  t.notMatch(JSON.stringify(parseJson(deep)), /proto/, 'at any depth');
});
