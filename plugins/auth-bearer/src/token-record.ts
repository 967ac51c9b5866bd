import { SCOPES, type Scope } from '@plugboard/kernel';

/** What is kept of an issued token: never the token itself. Times are ISO 8601, for people read the file too. */
export interface TokenRecord {
  /** `tok_…`. */
  readonly id: string;
  readonly project: string;
  readonly name: string;
  readonly sha256: string;
  /** `svcp_Hhdw…S4zk`. */
  readonly hint: string;
  readonly scopes: readonly Scope[];
  /** The only agents that it reaches, where it is there. */
  readonly agents?: readonly string[];
  readonly requestsPerMinute?: number;
  readonly runningTurns?: number;
  readonly createdAt: string;
  /** Who ran the command, as the system knows them. */
  readonly createdBy: string;
  readonly expiresAt?: string;
  readonly revokedAt?: string;
  readonly revokedBy?: string;
  /** The id of the token that this one came in place of. */
  readonly replaces?: string;
}

export type TokenStatus = 'active' | 'expired' | 'revoked';

export function statusOf({ revokedAt, expiresAt }: Pick<TokenRecord, 'revokedAt' | 'expiresAt'>, now: number): TokenStatus {
  if (revokedAt !== undefined) return 'revoked';
  return expiresAt !== undefined && Date.parse(expiresAt) <= now ? 'expired' : 'active';
}

type Fits = (value: unknown) => boolean;

const isText: Fits = (value) => typeof value === 'string' && value !== '';
const isTime: Fits = (value) =>
  typeof value === 'string' && /^\d{4}-\d{2}-\d{2}T/.test(value) && !Number.isNaN(Date.parse(value));
const isCount: Fits = (value) => Number.isInteger(value) && (value as number) > 0;
const isList =
  (fits: Fits): Fits =>
  (value) =>
    Array.isArray(value) && value.length > 0 && value.every(fits);
const matches =
  (pattern: RegExp): Fits =>
  (value) =>
    typeof value === 'string' && pattern.test(value);

/** Every field, what it must be, and whether it must be there. */
const FIELDS: Readonly<Record<keyof TokenRecord, { readonly fits: Fits; readonly optional?: true }>> = {
  id: { fits: matches(/^tok_[0-9A-Za-z]{16}$/) },
  project: { fits: isText },
  name: { fits: isText },
  sha256: { fits: matches(/^[0-9a-f]{64}$/) },
  hint: { fits: isText },
  scopes: { fits: isList((scope) => SCOPES.includes(scope as Scope)) },
  agents: { fits: isList(isText), optional: true },
  requestsPerMinute: { fits: isCount, optional: true },
  runningTurns: { fits: isCount, optional: true },
  createdAt: { fits: isTime },
  createdBy: { fits: isText },
  expiresAt: { fits: isTime, optional: true },
  revokedAt: { fits: isTime, optional: true },
  revokedBy: { fits: isText, optional: true },
  replaces: { fits: isText, optional: true },
};

/**
 * What keeps a value from being a record, as half a sentence, or undefined. A field that is not known, `__proto__` included, is a fault: a limit that this version
 * does not know of must not be passed over.
 */
export function faultOfRecord(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is no object';
  const stranger = Object.keys(value).find((key) => !Object.hasOwn(FIELDS, key));
  if (stranger !== undefined) return `has an unknown field ${JSON.stringify(stranger)}`;
  for (const [name, { fits, optional }] of Object.entries(FIELDS)) {
    if (!Object.hasOwn(value, name)) {
      if (!optional) return `has no field "${name}"`;
    } else if (!fits(Reflect.get(value, name))) return `has a field "${name}" that cannot be right`;
  }
  return undefined;
}
