import t from 'tap';
import { HttpError } from '../src/index.js';

t.test('errors of another copy of the package are recognised, and those of subclasses by their class', async (t) => {
  class Foreign extends Error {}
  Object.defineProperty(Foreign.prototype, Symbol.for('plugboard.error.HttpError'), { value: true });
  class Special extends HttpError {}
  t.ok(new Foreign() instanceof HttpError, 'of another copy');
  t.ok(new Special(400, 'x') instanceof HttpError && new Special(400, 'x') instanceof Special);
  t.notOk(new HttpError(400, 'x') instanceof Special);
  t.notOk(new Error('x') instanceof HttpError);
  t.notOk((null as unknown) instanceof HttpError);
});
