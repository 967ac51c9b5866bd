/** The caller: identified by its credential, or `OPEN` if the server requires none. @public */
export interface Principal {
  /** The tenant. Taken from the credential, never from the request. */
  readonly project: string;
  /** The name of the token, for people. Absent in the open scope. */
  readonly token?: string;
  /** Identifies the credential in limits and logs. Absent in the open scope. */
  readonly tokenId?: string;
  /** The only agents the caller may use. If absent, all agents of the project. */
  readonly agents?: readonly string[];
  readonly scopes: readonly Scope[];
  /** Limits of this credential. If absent, none. */
  readonly limits?: PrincipalLimits;
  /** The `sub` claim of a JWT. */
  readonly subject?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** Limits of one credential. Callers beyond them get 429. @public */
export interface PrincipalLimits {
  readonly requestsPerMinute?: number;
  readonly runningTurns?: number;
}

/**
 * Permissions: run turns, list agents and models, read sessions, create and change sessions,
 * approve tool calls of other callers, administer the server.
 *
 * @public
 */
export const SCOPES = ['chat', 'models:read', 'sessions:read', 'sessions:write', 'approve', 'admin'] as const;

/** A permission of a caller, one of `SCOPES`. @public */
export type Scope = (typeof SCOPES)[number];

/** The scopes of a token that names none. @public */
export const DEFAULT_SCOPES: readonly Scope[] = Object.freeze([
  'chat',
  'models:read',
  'sessions:read',
  'sessions:write',
] as const);

/** The project that always exists. Its callers reach every agent and raw model. @public */
export const DEFAULT_PROJECT = 'default';

/** Every caller of an open server. @public */
export const OPEN: Principal = Object.freeze({ project: DEFAULT_PROJECT, scopes: DEFAULT_SCOPES });

/**
 * Returns the first of these scopes that the principal lacks, or undefined if it has all. Every
 * transport asks here.
 *
 * @public
 */
export function missingScope(principal: Principal, scopes: readonly Scope[]): Scope | undefined {
  return scopes.find((scope) => !principal.scopes.includes(scope));
}

/**
 * Returns what identifies a caller to itself, for requests that join, answers that are replayed and
 * results that wait: the id of its credential, never a name. On an open server all requests have
 * the same caller. Undefined for a JWT without a subject, because all such tokens of an issuer
 * share one id: its caller has no identity.
 *
 * @public
 */
export function callerId(principal: Principal): string | undefined {
  const { tokenId, claims, subject } = principal;
  if (principal === OPEN) return '';
  return claims !== undefined && !subject ? undefined : tokenId;
}
