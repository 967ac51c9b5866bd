import { type AuthResult, DEFAULT_SCOPES, type Principal, type PrincipalLimits, type Scope } from '@plugboard/kernel';
import type { ConfiguredToken } from './config.js';
import { digestOf } from './digest.js';
import { parseExpiry } from './expiry.js';
import type { TokenRecord } from './token-record.js';

/** A token as the server knows it: ready to be answered with. */
export interface KnownToken {
  readonly id: string;
  readonly sha256: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** The caller whom it stands for, or why it is refused whatever the time. */
  readonly answer: AuthResult;
}

/** @param projects that are in the configuration: a token of any other is refused. */
export function knownToken(record: TokenRecord, projects: ReadonlySet<string>): KnownToken {
  const { id, sha256, project, expiresAt, revokedAt } = record;
  const answer = (): AuthResult => {
    if (revokedAt !== undefined) return { refused: `the token ${id} is revoked` };
    if (!projects.has(project))
      return { refused: `the token ${id} is of project "${project}", which is not in the configuration` };
    return { principal: principalOf(record) };
  };
  return { id, sha256, expiresAt: expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt), answer: answer() };
}

/** One that stands in the configuration. Its id follows from its secret, so that it is the same after a restart. */
export function configuredToken(token: ConfiguredToken): KnownToken {
  const { scopes = DEFAULT_SCOPES, expires } = token;
  const sha256 = configuredDigest(token) ?? ''; // the check has seen to it that there is one
  const id = configuredId(sha256);
  const expiresAt = expires === undefined ? undefined : parseExpiry(expires, 0);
  return {
    id,
    sha256,
    expiresAt: expiresAt ?? Number.POSITIVE_INFINITY,
    answer: { principal: principalOf({ ...token, id, scopes }) },
  };
}

/** The digest of a token of the configuration; undefined where it has no secret, or a blank one. */
export function configuredDigest({ sha256, token }: ConfiguredToken): string | undefined {
  return sha256?.toLowerCase() ?? (token ? digestOf(token) : undefined);
}

export function configuredId(sha256: string): string {
  return `cfg_${sha256.slice(0, 12)}`;
}

interface Rights extends PrincipalLimits {
  readonly id: string;
  readonly project: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly agents?: readonly string[];
}

function principalOf({ id, project, name, scopes, agents, requestsPerMinute, runningTurns }: Rights): Principal {
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
