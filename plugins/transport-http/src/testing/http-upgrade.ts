import assert from 'node:assert/strict';
import { Contract, type DeclareTest } from '@plugboard/testing';
import type { HttpUpgrade } from '../routing/upgrades.js';
import { addErrorCases } from './error-formatter.js';
import { assertAccess } from './http-route.js';

export interface HttpUpgradeContractOptions {
  /** Returns an upgrade that is ready for use. Called once per case; the caller closes it. */
  readonly open: () => Promise<HttpUpgrade> | HttpUpgrade;
}

/** Declares the tests of a path for WebSockets (`HttpUpgrade`), without its messages. */
export function httpUpgradeContract(test: DeclareTest, { open }: HttpUpgradeContractOptions): void {
  const contract = new Contract('An HTTP upgrade', test);
  contract.add('has an absolute path without parameters', 'HttpUpgrade.path', async () => {
    const { path } = await open();
    assert.match(path, /^\/[^?#\s{}*:]*$/, `its path is "${path}"`);
  });
  contract.add('names the scopes that a credential needs', 'HttpUpgrade.access', async () => {
    const { access } = await open();
    assert.ok(Array.isArray(access), `its access is ${JSON.stringify(access)}`);
    assertAccess(access);
  });
  contract.add('handles requests with a function', 'HttpUpgrade.handle', async () => {
    assert.equal(typeof (await open()).handle, 'function', '`handle` is not a function');
  });
  addErrorCases(contract, async () => (await open()).formatError);
}
