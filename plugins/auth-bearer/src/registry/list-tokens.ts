import { DEFAULT_SCOPES } from '@plugboard/kernel/contracts';
import type { BearerConfig } from '../config.js';
import type { LastUses } from '../files/last-use.js';
import { configuredDigest, configuredId } from '../tokens/known-token.js';
import { statusOf, type TokenRecord, type TokenStatus } from '../tokens/token-record.js';

/** A token in a list: everything but its digest. */
export interface ListedToken extends Omit<TokenRecord, 'sha256' | 'hint' | 'createdAt' | 'createdBy'> {
  readonly status: TokenStatus;
  readonly hint?: string;
  readonly createdAt?: string;
  readonly createdBy?: string;
  readonly lastUsedAt?: string;
  /** Where it is: for an issued token the tokens file or the database. */
  readonly source: 'file' | 'database' | 'configuration';
}

/** Lists all tokens, those of the configuration first. */
export function listTokens(
  config: BearerConfig,
  { records, source }: { readonly records: readonly TokenRecord[]; readonly source: 'file' | 'database' },
  uses: LastUses,
  now: number,
): readonly ListedToken[] {
  const lastUse = (id: string) => {
    const time = uses.get(id);
    return time === undefined ? {} : { lastUsedAt: new Date(time).toISOString() };
  };
  const configured = config.tokens.map((token): ListedToken => {
    const { sha256, token: secret, expires, scopes = DEFAULT_SCOPES, ...fields } = token;
    const id = configuredId(configuredDigest(token) ?? '');
    const expiry = expires === undefined ? {} : { expiresAt: new Date(expires).toISOString() };
    return { id, ...fields, scopes, ...expiry, ...lastUse(id), status: statusOf(expiry, now), source: 'configuration' };
  });
  const issued = records.map(({ sha256, ...record }): ListedToken => {
    return { ...record, ...lastUse(record.id), status: statusOf(record, now), source };
  });
  return [...configured, ...issued];
}
