import { createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { addressFault } from './address.js';
import { otherIssuer, wrongContent, wrongKeyAddress } from './errors.js';
import { fetchJson } from './fetch-json.js';

/** Finds the issuer's key for a token. */
export type Keys = ReturnType<typeof createLocalJWKSet>;

/**
 * Fetches the keys of an issuer. Their address never comes from a token: `jku`, `x5u` and `jwk` are
 * ignored.
 */
export class Issuer {
  readonly #name: string;
  readonly #configured: URL | undefined;
  #discovered: URL | undefined;

  constructor({ issuer, jwksUri }: { readonly issuer: string; readonly jwksUri?: string }) {
    this.#name = issuer;
    this.#configured = jwksUri === undefined ? undefined : new URL(jwksUri);
  }

  /** Fetches the keys. @throws KeysUnavailable */
  async keys(signal: AbortSignal): Promise<Keys> {
    this.#discovered = this.#configured ?? this.#discovered ?? (await this.#discover(signal));
    const address = this.#discovered;
    try {
      return keysIn(await fetchJson(address, signal), address);
    } catch (error) {
      this.#discovered = undefined; // they may have moved
      throw error;
    }
  }

  /** OpenID Connect Discovery 1.0, section 4. */
  async #discover(signal: AbortSignal): Promise<URL> {
    const address = new URL(`${this.#name.replace(/\/$/, '')}/.well-known/openid-configuration`);
    const page = await fetchJson(address, signal);
    if (typeof page !== 'object' || page === null) throw wrongContent(address, 'OpenID configuration');
    const { issuer, jwks_uri: keys } = page as Readonly<Record<string, unknown>>;
    if (issuer !== this.#name) throw otherIssuer(address, issuer);
    const fault = typeof keys === 'string' ? addressFault(keys, address) : 'is missing';
    if (fault !== undefined) throw wrongKeyAddress(address, fault);
    return new URL(String(keys));
  }
}

function keysIn(set: unknown, address: URL): Keys {
  try {
    return createLocalJWKSet(set as JSONWebKeySet); // which checks that
  } catch {
    throw wrongContent(address, 'set of keys (JWKS)');
  }
}
