import type { AuthProvider, AuthResult } from '@plugboard/kernel';
import { DEFAULT_SCOPES, type Scope } from '@plugboard/kernel/contracts';
import t from 'tap';
import { authProviderContract } from '../../src/suites/auth-provider.js';
import { casesOf, failing, verdict } from '../failing.js';

const ACME: AuthResult = { principal: { project: 'acme', scopes: DEFAULT_SCOPES } };

/**
 * Accepts `key-good`, refuses other keys, and does not claim other tokens; changed for some tokens.
 */
function provider(changes: Readonly<Record<string, () => AuthResult | undefined | Promise<AuthResult>>> = {}): AuthProvider {
  return {
    async authenticate({ bearer = 'none' }) {
      if (Object.hasOwn(changes, bearer)) return changes[bearer]?.();
      if (bearer === 'key-good') return ACME;
      return bearer.startsWith('key-') ? { refused: 'unknown key' } : undefined;
    },
  };
}

const cases = (broken: AuthProvider) =>
  casesOf((test) =>
    authProviderContract(test, {
      open: () => broken,
      valid: { bearer: 'key-good' },
      foreign: { bearer: 'other' },
      refused: [{ bearer: 'key-bad' }],
      timeLimit: 100,
    }),
  );

const IDENTIFIES = 'identifies the caller of valid credentials';
const PROJECT = 'names the project of the caller';
const SCOPES = 'grants only scopes that exist';
const SAME = 'gives the same answer each time, also at the same time';
const FOREIGN = 'returns `undefined` for the credentials of another provider';
const REFUSES = 'refuses invalid credentials with a reason';
const REASON = 'keeps the credentials out of the reason';
const MISSING = 'accepts no request without credentials';
const RESEMBLING = 'accepts no token that only resembles a valid one';
const MALFORMED = 'accepts no malformed token and does not throw';
const ABORTED = 'ends soon after the signal is aborted';

t.test('passes a correct provider', async (t) => {
  t.same(await failing(cases(provider())), []);
});

t.test('finds each broken promise', async (t) => {
  const refused = { refused: 'no' };
  t.same(await failing(cases(provider({ 'key-good': () => refused }))), [IDENTIFIES, PROJECT, SCOPES, SAME]);
  const principal = (change: object) => ({ principal: { project: 'acme', scopes: DEFAULT_SCOPES, ...change } });
  t.same(await failing(cases(provider({ 'key-good': () => principal({ project: '' }) }))), [PROJECT]);
  t.same(await failing(cases(provider({ 'key-good': () => principal({ scopes: ['root' as Scope] }) }))), [SCOPES]);
  t.same(await failing(cases(provider({ 'key-good': () => principal({ scopes: undefined }) }))), [SCOPES]);
  let count = 0;
  t.same(await failing(cases(provider({ 'key-good': () => principal({ token: `${++count}` }) }))), [SAME]);
  t.same(await failing(cases(provider({ other: () => refused }))), [FOREIGN]);
  t.same(await failing(cases(provider({ 'key-bad': () => ACME }))), [REFUSES]);
  t.same(await failing(cases(provider({ 'key-bad': () => ({ refused: '' }) }))), [REFUSES]);
  t.same(await failing(cases(provider({ 'key-bad': () => ({ refused: 'key-bad is unknown' }) }))), [REASON]);
  t.same(await failing(cases(provider({ '': () => ACME }))), [MALFORMED]);
  t.same(await failing(cases(provider({ none: () => ACME }))), [MISSING]);
  t.same(await failing(cases(provider({ 'key-goodx': () => ACME }))), [RESEMBLING]);
  t.same(await failing(cases(provider({ 'key-goo': () => ACME }))), [RESEMBLING]);
  const throwing = () => {
    throw new Error('invalid token');
  };
  t.match(
    await verdict(cases(provider({ 'a.b.c': throwing })), MALFORMED),
    'it throws for the token "a.b.c": Error: invalid token',
  );
  t.same(
    await failing(
      cases({ authenticate: ({ bearer }, signal) => slow(provider().authenticate({ bearer, headers: {} }, signal), signal) }),
    ),
    [ABORTED],
  );
});

/** Never answers once its signal is aborted. */
async function slow<T>(answer: T, signal: AbortSignal): Promise<Awaited<T>> {
  await Promise.resolve();
  await Promise.resolve();
  return signal.aborted ? new Promise<never>(() => {}) : await answer;
}
