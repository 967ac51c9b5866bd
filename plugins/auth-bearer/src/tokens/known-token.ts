import type { AuthResult, Principal } from '@plugboard/kernel';
import { DEFAULT_SCOPES, type PrincipalLimits, type Scope } from '@plugboard/kernel/contracts';
import type { ConfiguredToken } from '../config.js';
import { digestOf } from './digest.js';
import { parseExpiry } from './expiry.js';
import type { TokenRecord } from './token-record.js';

/** A token in the form in which requests are checked. */
export interface KnownToken {
  readonly id: string;
  readonly sha256: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** The caller, or why the token is refused regardless of its expiry. */
  readonly result: AuthResult;
}

/** @param projects those of the configuration. A token of another project is refused. */
export function issuedToken(record: TokenRecord, projects: ReadonlySet<string>): KnownToken {
  const { id, sha256, project, expiresAt, revokedAt } = record;
  const result = (): AuthResult => {
    if (revokedAt !== undefined) return { refused: `the token ${id} is revoked` };
    if (!projects.has(project))
      return { refused: `the token ${id} belongs to the project "${project}", which is not in the configuration` };
    return { principal: principalOf(record) };
  };
  return { id, sha256, expiresAt: expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt), result: result() };
}

/** A token of the configuration. Its id comes from its secret, so it survives a restart. */
export function configuredToken(token: ConfiguredToken): KnownToken {
  const { scopes = DEFAULT_SCOPES, expires } = token;
  const sha256 = configuredDigest(token) ?? ''; // checkConfig ensures that there is one
  const id = configuredId(sha256);
  const expiresAt = expires === undefined ? undefined : parseExpiry(expires, 0);
  return {
    id,
    sha256,
    expiresAt: expiresAt ?? Number.POSITIVE_INFINITY,
    result: { principal: principalOf({ ...token, id, scopes }) },
  };
}

/** The digest of a token of the configuration, or undefined if it has no secret. */
export function configuredDigest({ sha256, token }: ConfiguredToken): string | undefined {
  return sha256?.toLowerCase() ?? (token ? digestOf(token) : undefined);
}

export function configuredId(sha256: string): string {
  return `cfg_${sha256.slice(0, 12)}`;
}

interface TokenFields extends PrincipalLimits {
  readonly id: string;
  readonly project: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly agents?: readonly string[];
}

function principalOf({ id, project, name, scopes, agents, requestsPerMinute, runningTurns }: TokenFields): Principal {
  const limits: PrincipalLimits = {
    ...(requestsPerMinute !== undefined && { requestsPerMinute }),
    ...(runningTurns !== undefined && { runningTurns }),
  };
  return Object.freeze({
    project,
    token: name,
    tokenId: id,
    scopes: Object.freeze([...scopes]),
    ...(agents && { agents: Object.freeze([...agents]) }),
    ...(Object.keys(limits).length > 0 && { limits: Object.freeze(limits) }),
  });
}
