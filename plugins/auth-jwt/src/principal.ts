import { hash } from 'node:crypto';
import type { AuthResult } from '@plugboard/kernel';
import {
  DEFAULT_PROJECT,
  DEFAULT_SCOPES,
  type PrincipalLimits,
  parseJson,
  SCOPES,
  type Scope,
} from '@plugboard/kernel/contracts';
import type { JWTPayload } from 'jose';
import type { JwtConfig } from './config.js';
import { BAD_SUBJECT, NO_PROJECT_CLAIM, TOO_DEEP, UNKNOWN_PROJECT, UNMAPPED } from './errors.js';

/** Maximum length of a displayed name, in UTF-16 units. */
const LONGEST_NAME = 64;

/**
 * Maximum nesting of claims. They are passed to tools, which need not handle thousands of levels.
 */
const DEEPEST = 16;

/** Returns the principal of a checked token, or the reason to refuse it. */
export function principalOf(payload: JWTPayload, config: JwtConfig, projects: readonly string[]): AuthResult {
  const { issuer, project: rule } = config;
  if (!isShallow(payload, DEEPEST)) return { refused: TOO_DEEP };
  const claims = frozenCopy(payload);
  const found = projectOf(claims, rule, projects);
  if ('refused' in found) return found;
  const { sub: subject } = claims;
  if (subject !== undefined && typeof subject !== 'string') return { refused: BAD_SUBJECT };
  const principal = {
    project: found.project,
    token: nameOf(subject),
    tokenId: idOf(issuer, subject),
    scopes: scopesOf(claims),
    ...limitsOf(config),
    ...(subject !== undefined && { subject }),
    claims,
  };
  return { principal: Object.freeze(principal) };
}

/** The limits of each caller of the entry, counted by id. */
function limitsOf({ requestsPerMinute, runningTurns }: JwtConfig): { readonly limits?: PrincipalLimits } {
  if (requestsPerMinute === undefined && runningTurns === undefined) return {};
  const limits = {
    ...(requestsPerMinute !== undefined && { requestsPerMinute }),
    ...(runningTurns !== undefined && { runningTurns }),
  };
  return { limits: Object.freeze(limits) };
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((item) => isShallow(item, levels - 1));
}

/** Copies the claims without any key `__proto__`, and freezes the copy at every level. */
function frozenCopy(claims: JWTPayload): Readonly<Record<string, unknown>> {
  return deepFreeze(parseJson(JSON.stringify(claims)) as Record<string, unknown>);
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}

/** The displayed name: a subject may be long, and may contain control characters. */
function nameOf(subject: string | undefined): string {
  if (subject === undefined) return 'jwt';
  const name = `jwt:${subject.replaceAll(/\p{C}/gu, '�')}`;
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1).toWellFormed()}…` : name;
}

/**
 * Equal for all tokens of a subject, so that a new token does not reset the limits. The issuer
 * contains no NUL.
 */
function idOf(issuer: string, subject = ''): string {
  return `jwt_${hash('sha256', `${issuer}\0${subject}`, 'base64url').slice(0, 22)}`;
}

/**
 * Returns the scopes of checked claims: those of `scope` (RFC 9068, separated by spaces) and `scp`
 * (a list) that Plugboard knows. A token without both claims gets the default scopes. A token with
 * one of them gets no others, even if it names none that Plugboard knows.
 */
function scopesOf({ scope, scp }: Readonly<Record<string, unknown>>): readonly Scope[] {
  if (scope === undefined && scp === undefined) return DEFAULT_SCOPES;
  const words = new Set([scope, scp].flatMap(wordsOf));
  return Object.freeze(SCOPES.filter((known) => words.has(known)));
}

function wordsOf(claim: unknown): readonly unknown[] {
  return typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [];
}

/**
 * Returns the project of checked claims, or the reason why there is none.
 *
 * With a prefix, the issuer chooses names of projects, and so do tenants that choose their own
 * names at the issuer. Therefore only a map, which the operator writes, can give `default`, whose
 * tokens reach every agent and raw model.
 *
 * @param projects the names under `projects` in the file.
 */
function projectOf(
  claims: Readonly<Record<string, unknown>>,
  { claim, map, prefix = '' }: JwtConfig['project'],
  projects: readonly string[],
): { readonly project: string } | { readonly refused: string } {
  const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  if (typeof value !== 'string' || value === '') return { refused: NO_PROJECT_CLAIM };
  const project = map === undefined ? prefix + value : Object.hasOwn(map, value) ? map[value] : undefined;
  if (project === undefined) return { refused: UNMAPPED };
  const known = project === DEFAULT_PROJECT ? map !== undefined : projects.includes(project);
  return known ? { project } : { refused: UNKNOWN_PROJECT };
}
