import type { IdempotencyRecord } from '@plugboard/kernel/contracts';
import t from 'tap';
import { LocalClaims } from '../src/index.js';

const KEY = { project: 'acme', route: '/v1/x', key: 'once' };
const RUNNING = { key: KEY, fingerprint: 'f1', result: 'running' };
const ANSWER: IdempotencyRecord = { key: KEY, fingerprint: 'f1', result: { text: 'answer' } };

/** A store whose answers a test gives. */
function asked<T>() {
  const answers: PromiseWithResolvers<T>[] = [];
  const ask = () => {
    const answer = Promise.withResolvers<T>();
    answers.push(answer);
    return answer.promise;
  };
  return { answers, ask };
}

t.test('requests with one key wait while one asks the store, and see what it claims', async (t) => {
  const claims = new LocalClaims();
  const { answers, ask } = asked<IdempotencyRecord | undefined>();
  const all = ['f1', 'f2', 'f3'].map((fingerprint) => claims.claim(KEY, fingerprint, ask));
  t.equal(answers.length, 1);
  answers[0]?.resolve(undefined);
  t.strictSame(await Promise.all(all), [undefined, RUNNING, RUNNING]);
  t.equal(answers.length, 1);
});

t.test('after a claim that the store does not give, the next request asks', async (t) => {
  const claims = new LocalClaims();
  const { answers, ask } = asked<IdempotencyRecord | undefined>();
  const failed = claims.claim(KEY, 'f1', ask);
  const second = claims.claim(KEY, 'f1', ask);
  answers[0]?.reject(new Error('no connection'));
  await t.rejects(failed, { message: 'no connection' });
  answers[1]?.resolve(ANSWER);
  t.strictSame(await second, ANSWER);
  t.equal(await claims.claim(KEY, 'f1', () => undefined), undefined);
});

t.test('a key is claimed again after its release, also if the store fails to free it', async (t) => {
  const claims = new LocalClaims();
  let freed = 0;
  await claims.release(KEY, async () => void freed++);
  t.equal(freed, 0, 'there was no claim');
  for (const error of [undefined, new Error('no connection')]) {
    const { answers, ask } = asked<void>();
    t.equal(await claims.claim(KEY, 'f1', () => undefined), undefined);
    const released = claims.release(KEY, ask);
    const again = claims.release(KEY, async () => void freed++);
    const next = claims.claim(KEY, 'f1', () => undefined);
    if (error) answers[0]?.reject(error);
    else answers[0]?.resolve();
    await (error ? t.rejects(released, error) : released);
    await again;
    t.equal(await next, undefined);
    claims.stored(ANSWER);
  }
  t.equal(freed, 0, 'a second release does nothing');
});

t.test('an answer ends a claim, and `began` does not', async (t) => {
  const claims = new LocalClaims();
  await claims.claim(KEY, 'f1', () => undefined);
  claims.stored({ ...ANSWER, result: 'began' });
  claims.stored(undefined);
  t.strictSame(await claims.claim(KEY, 'f1', () => undefined), RUNNING);
  claims.stored(ANSWER);
  t.equal(await claims.claim(KEY, 'f1', () => undefined), undefined);
});
