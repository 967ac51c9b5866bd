import { createPrivateKey, type KeyObject } from 'node:crypto';
import { ClientCredentialsProvider, fetchToken, PrivateKeyJwtProvider } from '@modelcontextprotocol/client';
import type { McpConfig } from '../config.js';
import type { Fetch } from '../http/fetch.js';
import type { TokenSource } from './discovery.js';
import { invalidToken } from './errors.js';

export type AuthConfig = NonNullable<McpConfig['auth']>;

export interface IssuedToken {
  readonly value: string;
  /** The scopes that were granted, if the authorization server says so. */
  readonly scopes: readonly string[];
  /** Seconds; undefined if the authorization server does not say. */
  readonly lifetime: number | undefined;
}

/** Asks for a token with client credentials (RFC 6749, section 4.4; RFC 7523 with a key). */
export async function requestToken(
  { clientId, clientSecret, privateKey, algorithm }: AuthConfig,
  { issuer, metadata, resource }: TokenSource,
  scopes: readonly string[],
  fetch: Fetch,
): Promise<IssuedToken> {
  const client = { clientId, expectedIssuer: issuer };
  const key = privateKey === undefined ? undefined : createPrivateKey(privateKey);
  const provider = key
    ? new PrivateKeyJwtProvider({
        ...client,
        privateKey: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
        algorithm: `${algorithm ?? algorithmsOf(key)[0]}`,
      })
    : new ClientCredentialsProvider({ ...client, clientSecret: `${clientSecret}` });
  const scope = scopes.length === 0 ? {} : { scope: scopes.join(' ') };
  const answer = await fetchToken(provider, issuer, { metadata, resource, ...scope, fetchFn: fetch });
  const { access_token: value, token_type: type, expires_in: lifetime, scope: granted = '' } = answer;
  if (type.toLowerCase() !== 'bearer' || !/^[\x21-\x7e]+$/.test(value)) throw invalidToken(issuer);
  return { value, scopes: granted.split(' ').filter((word) => word !== ''), lifetime };
}

/** The algorithms that a key can sign with, the usual one first; none for a key of another kind. */
export function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): readonly string[] {
  if (asymmetricKeyType === 'rsa') return ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
  const curves: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' };
  const algorithm = curves[asymmetricKeyDetails?.namedCurve ?? ''];
  return algorithm === undefined ? [] : [algorithm];
}
