import { inspect } from 'node:util';

/** What is shown of an error besides its message and its stack, and how deep its causes are. */
const SHOWN = ['name', 'code'];
const DEPTH = 5;

/**
 * A copy of what a plugin threw, for the program that embeds the server: of an error, its class,
 * its texts, its `code` and its causes. Other properties may hold a secret anywhere, and are left
 * out.
 */
export function withoutSecrets(thrown: unknown, redact: (text: string) => string, depth = DEPTH): unknown {
  if (typeof thrown === 'string') return redact(thrown);
  if (!(thrown instanceof Error)) return typeof thrown === 'object' ? redact(inspect(thrown)) : thrown;
  const copy = Object.create(Object.getPrototypeOf(thrown));
  const set = (key: string, value: unknown) =>
    Object.defineProperty(copy, key, { value, writable: true, configurable: true, enumerable: key === 'code' });
  set('message', redact(thrown.message));
  set('stack', redact(thrown.stack ?? ''));
  for (const key of SHOWN) {
    const value: unknown = Object.getOwnPropertyDescriptor(thrown, key)?.value;
    if (typeof value === 'string') set(key, redact(value));
  }
  if (depth === 0) return copy;
  if (thrown.cause !== undefined) set('cause', withoutSecrets(thrown.cause, redact, depth - 1));
  if (thrown instanceof AggregateError) {
    set(
      'errors',
      thrown.errors.map((error) => withoutSecrets(error, redact, depth - 1)),
    );
  }
  return copy;
}
