import { parseDate } from '@plugboard/kernel';
import { SCOPES, type Scope } from '@plugboard/kernel/contracts';

/** What is stored of a token: never the token. Times are ISO 8601, because people read it. */
export interface TokenRecord {
  /** `tok_…`. */
  readonly id: string;
  readonly project: string;
  readonly name: string;
  readonly sha256: string;
  /** `svcp_Hhdw…S4zk`. */
  readonly hint: string;
  readonly scopes: readonly Scope[];
  /** The only agents it may use. Absent: all agents of its project. */
  readonly agents?: readonly string[];
  readonly requestsPerMinute?: number;
  readonly runningTurns?: number;
  readonly createdAt: string;
  /** The operating system user that ran the command. */
  readonly createdBy: string;
  readonly expiresAt?: string;
  readonly revokedAt?: string;
  readonly revokedBy?: string;
  /** Id of the token that was rotated into this one. */
  readonly replaces?: string;
}

export type TokenStatus = 'active' | 'expired' | 'revoked';

export function statusOf({ revokedAt, expiresAt }: Pick<TokenRecord, 'revokedAt' | 'expiresAt'>, now: number): TokenStatus {
  if (revokedAt !== undefined) return 'revoked';
  return expiresAt !== undefined && Date.parse(expiresAt) <= now ? 'expired' : 'active';
}

type Check = (value: unknown) => boolean;

const isNonEmpty: Check = (value) => typeof value === 'string' && value !== '';
const isTime: Check = (value) => typeof value === 'string' && value.includes('T') && parseDate(value) !== undefined;
const isCount: Check = (value) => Number.isInteger(value) && (value as number) > 0;
const isList =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.length > 0 && value.every(check);
const matches =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === 'string' && pattern.test(value);

/** Every field, how it is validated, and whether it may be absent. */
const FIELDS: Readonly<Record<keyof TokenRecord, { readonly check: Check; readonly optional?: true }>> = {
  id: { check: matches(/^tok_[0-9A-Za-z]{16}$/) },
  project: { check: isNonEmpty },
  name: { check: isNonEmpty },
  sha256: { check: matches(/^[0-9a-f]{64}$/) },
  hint: { check: isNonEmpty },
  scopes: { check: isList((scope) => SCOPES.includes(scope as Scope)) },
  agents: { check: isList(isNonEmpty), optional: true },
  requestsPerMinute: { check: isCount, optional: true },
  runningTurns: { check: isCount, optional: true },
  createdAt: { check: isTime },
  createdBy: { check: isNonEmpty },
  expiresAt: { check: isTime, optional: true },
  revokedAt: { check: isTime, optional: true },
  revokedBy: { check: isNonEmpty, optional: true },
  replaces: { check: isNonEmpty, optional: true },
};

/**
 * Returns why a value is not a token record, as a clause, or undefined if it is one. An unknown
 * field is refused, because it may be a limit that this version would ignore.
 */
function recordProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is not an object';
  const unknown = Object.keys(value).find((key) => !Object.hasOwn(FIELDS, key));
  if (unknown !== undefined) return `has an unknown field ${JSON.stringify(unknown)}`;
  for (const [name, { check, optional }] of Object.entries(FIELDS)) {
    if (!Object.hasOwn(value, name)) {
      if (!optional) return `has no field "${name}"`;
    } else if (!check(Reflect.get(value, name))) return `has an invalid field "${name}"`;
  }
  return undefined;
}

/** The issued tokens cannot be read. The message says where they are, and what to do. */
export class TokensUnusable extends Error {
  override readonly name = 'TokensUnusable';
}

/** @param damaged makes the error for what is wrong with the values, as a clause. */
export function tokenRecords(values: readonly unknown[], damaged: (problem: string) => Error): readonly TokenRecord[] {
  const ids = new Set<string>();
  const digests = new Set<string>();
  for (const [index, token] of values.entries()) {
    const problem = recordProblem(token);
    if (problem) throw damaged(`tokens[${index}] ${problem}`);
    const { id, sha256 } = token as TokenRecord;
    if (ids.has(id) || digests.has(sha256)) throw damaged(`tokens[${index}] is a duplicate`);
    ids.add(id);
    digests.add(sha256);
  }
  return values as readonly TokenRecord[];
}
