import assert from 'node:assert/strict';
import type { AuthProvider, AuthResult, Credentials } from '@plugboard/kernel';
import { SCOPES } from '@plugboard/kernel/contracts';
import { Contract, type DeclareTest } from '../contract/contract.js';
import { waitFor } from '../contract/wait.js';

/** The options of `authProviderContract`. @experimental */
export interface AuthProviderContractOptions {
  /** Returns a provider that is ready for use. Called once per case; the caller closes it. */
  readonly open: () => Promise<AuthProvider> | AuthProvider;
  /** Credentials that the provider accepts. */
  readonly valid: Partial<Credentials>;
  /** Credentials that belong to another provider. */
  readonly foreign: Partial<Credentials>;
  /** Credentials that look like the provider's but are not valid: expired, revoked, altered. */
  readonly refused?: readonly Partial<Credentials>[];
  /** Milliseconds that one answer may take. By default 10,000. */
  readonly timeLimit?: number;
}

/**
 * Declares the tests of a way to identify callers (`AuthProvider`).
 *
 * ```ts
 * authProviderContract(t.test, { open, valid: { bearer: 'key-1' }, foreign: { bearer: 'x' }, refused: [{ bearer: 'key-0' }] });
 * ```
 *
 * @experimental
 */
export function authProviderContract(test: DeclareTest, options: AuthProviderContractOptions): void {
  const { open, valid, foreign, refused = [], timeLimit } = options;
  const contract = new Contract('An auth provider', test);
  const ask = async (provider: AuthProvider, credentials: Partial<Credentials>, signal = new AbortController().signal) => {
    const answer = async () => provider.authenticate({ bearer: undefined, headers: {}, ...credentials }, signal);
    return waitFor('the answer', answer(), timeLimit);
  };

  contract.add('identifies the caller of valid credentials', 'AuthProvider', async () => {
    accepted(await ask(await open(), valid));
  });
  contract.add('names the project of the caller', 'Principal.project', async () => {
    const { project } = accepted(await ask(await open(), valid));
    assert.ok(typeof project === 'string' && project !== '', `the principal's project is ${JSON.stringify(project)}`);
  });
  contract.add('grants only scopes that exist', 'Principal.scopes', async () => {
    const { scopes } = accepted(await ask(await open(), valid));
    assert.ok(Array.isArray(scopes), `the principal's scopes are ${JSON.stringify(scopes)}`);
    for (const scope of scopes) assert.ok(SCOPES.includes(scope), `the scope "${scope}" does not exist`);
  });
  contract.add('gives the same answer each time, also at the same time', 'AuthProvider 4', async () => {
    const provider = await open();
    const [first, second] = await Promise.all([ask(provider, valid), ask(provider, valid)]);
    const third = await ask(provider, valid);
    const [one, two, three] = [first, second, third].map((result) => JSON.stringify(accepted(result)));
    assert.ok(one === two && two === three, `the principals differ: ${one}, ${two}, ${three}`);
  });
  contract.add('returns `undefined` for the credentials of another provider', 'AuthProvider 2', async () => {
    const result = await ask(await open(), foreign);
    assert.ok(result === undefined, `it answers ${kindOf(result)}, so that later providers are not asked`);
  });
  refused.forEach((credentials, i) => {
    const which = refused.length === 1 ? '' : ` (${i + 1} of ${refused.length})`;
    contract.add(`refuses invalid credentials with a reason${which}`, 'AuthResult', async () => {
      const result = await ask(await open(), credentials);
      assert.ok(result && 'refused' in result, `it answers ${kindOf(result)}`);
      assert.match(result.refused, /\S/, 'the reason is empty');
    });
    contract.add(`keeps the credentials out of the reason${which}`, 'AuthResult', async () => {
      const result = await ask(await open(), credentials);
      const reason = result && 'refused' in result ? result.refused : '';
      const { bearer = '' } = credentials;
      assert.ok(bearer.length < 4 || !reason.includes(bearer), 'the reason, which is logged, contains the bearer token');
    });
  });
  contract.add('accepts no request without credentials', 'AuthProvider 5', async () => {
    const provider = await open();
    const [none, empty] = [await ask(provider, {}), await ask(provider, { headers: { authorization: '' } })];
    for (const result of [none, empty]) assert.ok(result === undefined || 'refused' in result, `it answers ${kindOf(result)}`);
  });
  const { bearer: token } = valid;
  if (token !== undefined) {
    contract.add('accepts no token that only resembles a valid one', 'AuthProvider 5', async () => {
      const provider = await open();
      const resembling = { [`${token}x`]: 'with a letter more', [token.slice(0, -1)]: 'without its last letter' };
      for (const [bearer, difference] of Object.entries(resembling)) {
        const result = await ask(provider, { ...valid, bearer, headers: { authorization: `Bearer ${bearer}` } });
        assert.ok(result === undefined || 'refused' in result, `it accepts the valid token ${difference}`);
      }
    });
  }
  contract.add('accepts no malformed token and does not throw', 'AuthProvider 5', async () => {
    const provider = await open();
    for (const bearer of MALFORMED) {
      const shown = JSON.stringify(bearer.slice(0, 40));
      const result = await ask(provider, { ...foreign, bearer }).catch((error: unknown) => {
        throw new Error(`it throws for the token ${shown}: ${error}`);
      });
      assert.ok(result === undefined || 'refused' in result, `it accepts the token ${shown}`);
    }
  });
  contract.add('ends soon after the signal is aborted', 'AuthProvider 6', async () => {
    const abort = new AbortController();
    const ended = ask(await open(), valid, abort.signal).catch((error: unknown) => {
      if (String(error).includes('nothing after')) throw error;
    });
    abort.abort(new Error('the caller disconnected'));
    await ended;
  });
}

const MALFORMED = [
  '',
  ' ',
  '.',
  '..',
  'a.b.c',
  'eyJhbGciOiJub25lIn0.e30.',
  '../../etc/passwd',
  "' OR '1'='1",
  '__proto__',
  'constructor',
  '\u0000',
  'ü🧮',
  'x'.repeat(100_000),
];

function accepted(result: AuthResult | undefined) {
  assert.ok(result && 'principal' in result, `it answers ${kindOf(result)} to the valid credentials`);
  return result.principal;
}

function kindOf(result: AuthResult | undefined): string {
  if (result === undefined) return '`undefined`';
  return 'refused' in result ? `with a refusal (${result.refused})` : 'with a principal';
}
