import { DEFAULT_SCOPES } from '@plugboard/kernel';
import type { BearerConfig } from './config.js';
import { configuredDigest, configuredId } from './known-token.js';
import type { Uses } from './last-use.js';
import { statusOf, type TokenRecord, type TokenStatus } from './token-record.js';

/** A token as it is listed: all that is known of it but what could be tried against it. */
export interface ListedToken extends Omit<TokenRecord, 'sha256' | 'hint' | 'createdAt' | 'createdBy'> {
  readonly status: TokenStatus;
  readonly hint?: string;
  readonly createdAt?: string;
  readonly createdBy?: string;
  readonly lastUsedAt?: string;
  /** Where it stands: in the tokens file, or in the configuration. */
  readonly source: 'file' | 'configuration';
}

/** All tokens, those of the configuration first. */
export function listTokens(
  config: BearerConfig,
  records: readonly TokenRecord[],
  uses: Uses,
  now: number,
): readonly ListedToken[] {
  const used = (id: string) => {
    const time = uses.get(id);
    return time === undefined ? {} : { lastUsedAt: new Date(time).toISOString() };
  };
  const configured = config.tokens.map((token): ListedToken => {
    const { sha256, token: secret, expires, scopes = DEFAULT_SCOPES, ...facts } = token;
    const id = configuredId(configuredDigest(token) ?? '');
    const expiry = expires === undefined ? {} : { expiresAt: new Date(expires).toISOString() };
    return { id, ...facts, scopes, ...expiry, ...used(id), status: statusOf(expiry, now), source: 'configuration' };
  });
  const issued = records.map(({ sha256, ...record }): ListedToken => {
    return { ...record, ...used(record.id), status: statusOf(record, now), source: 'file' };
  });
  return [...configured, ...issued];
}
