import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Tool } from '@plugboard/kernel';
import t from 'tap';
import { argumentsValidator } from '../../src/tools/tool-arguments.js';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const toolWith = (inputSchema: object) =>
  ({ name: 'f', description: '', inputSchema, effect: 'read', run: async () => '' }) as Tool;

t.test('a compiled schema is freed with its tool', async (t) => {
  const schemas = Array.from({ length: 20 }, (_, i) => {
    const properties = { text: { type: 'string', maxLength: i } };
    t.match(argumentsValidator(toolWith({ type: 'object', properties }))('{"text": 1}'), { fault: /must be string/ });
    return new WeakRef(properties);
  });
  await delay(0);
  collectGarbage();
  t.strictSame(
    schemas.filter((schema) => schema.deref() !== undefined),
    [],
  );
});

t.test('schemas with the same id or with references to the meta-schema do not conflict', async (t) => {
  const check = (type: string) => argumentsValidator(toolWith({ $id: 'https://example.com/tool', properties: { a: { type } } }));
  const [texts, numbers] = [check('string'), check('number')];
  t.match(texts('{"a": "x"}'), { input: { a: 'x' } });
  t.match(numbers('{"a": "x"}'), { fault: /must be number/ });
  const schema = argumentsValidator(toolWith({ properties: { s: { $ref: 'https://json-schema.org/draft/2020-12/schema' } } }));
  t.match(schema('{"s": {"type": "string"}}'), { input: {} });
  t.match(schema('{"s": {"type": "text"}}'), { fault: /arguments do not match/ });
});

t.throws(() => argumentsValidator(toolWith({ properties: { a: { type: 'text' } } })), /schema is invalid/);
