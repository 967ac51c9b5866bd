import { createHash } from 'node:crypto';
import type { AuthResult } from '@plugboard/kernel';
import { type PrincipalLimits, parseJson } from '@plugboard/kernel/contracts';
import type { JWTPayload } from 'jose';
import type { JwtConfig } from './config.js';
import { BAD_SUBJECT, TOO_DEEP } from './errors.js';
import { projectOf } from './project.js';
import { scopesOf } from './scopes.js';

/** The longest name that people are shown, in UTF-16 units. */
const LONGEST_NAME = 64;

/** Levels of lists and maps in claims: they are handed on to tools, none of which should have to expect thousands. */
const DEEPEST = 16;

/** Who a checked token stands for, or why for nobody here. */
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

/** The limits of every caller of the entry. They are counted for each id. */
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

/** For people: a subject may be long, and hold characters that garble a terminal. */
function nameOf(subject: string | undefined): string {
  if (subject === undefined) return 'jwt';
  const name = `jwt:${subject.replaceAll(/\p{C}/gu, '�')}`;
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1).toWellFormed()}…` : name;
}

/** The same for every token of a subject, so that a new one every hour is no way around what is counted. An address holds no NUL. */
function idOf(issuer: string, subject = ''): string {
  return `jwt_${createHash('sha256').update(`${issuer}\0${subject}`).digest('base64url').slice(0, 22)}`;
}
