/** Who calls: what a credential was found to stand for, or `OPEN` where none is asked for. */
export interface Principal {
  /** The tenant. Comes from the credential only, never from a request. */
  readonly project: string;
  /** The name of the token, for people; absent in the open scope. */
  readonly token?: string;
  /** What tells this credential from every other one: limits are counted by it, and logs name it. Absent in the open scope. */
  readonly tokenId?: string;
  /** Only these agents, where it is there. */
  readonly agents?: readonly string[];
  readonly scopes: readonly Scope[];
  /** What this credential may use at once or in a time; nothing is limited where it is absent. */
  readonly limits?: PrincipalLimits;
  /** From a JWT. */
  readonly subject?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** What a principal may use. Beyond it, callers get 429. */
export interface PrincipalLimits {
  readonly requestsPerMinute?: number;
  readonly runningTurns?: number;
}

/** What a credential allows: to run turns, to list agents and models, to read sessions, to create and change them, to administer the server. */
export const SCOPES = ['chat', 'models:read', 'sessions:read', 'sessions:write', 'admin'] as const;

export type Scope = (typeof SCOPES)[number];

/** What a token allows that names no scopes of its own. */
export const DEFAULT_SCOPES: readonly Scope[] = Object.freeze([
  'chat',
  'models:read',
  'sessions:read',
  'sessions:write',
] as const);

/** The project that always exists, and whose scope reaches every agent and raw model. */
export const DEFAULT_PROJECT = 'default';

/** Everyone, where the server is open. */
export const OPEN: Principal = Object.freeze({ project: DEFAULT_PROJECT, scopes: DEFAULT_SCOPES });

/** The first of the scopes that the principal lacks, or undefined where it has them all. Every surface asks here. */
export function missingScope(principal: Principal, scopes: readonly Scope[]): Scope | undefined {
  return scopes.find((scope) => !principal.scopes.includes(scope));
}
