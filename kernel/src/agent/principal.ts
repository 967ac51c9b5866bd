/** Who calls: what a credential was found to stand for, or `OPEN` where none is asked for. */
export interface Principal {
  /** The tenant. Comes from the credential only, never from a request. */
  readonly project: string;
  /** The name of the token, for logs; absent in the open scope. */
  readonly token?: string;
  /** Only these agents, where it is there. */
  readonly agents?: readonly string[];
  readonly scopes: readonly Scope[];
  /** From a JWT. */
  readonly subject?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
}

export type Scope = 'chat' | 'models:read' | 'sessions:read' | 'sessions:write' | 'admin';

/** The project that always exists, and whose scope reaches every agent and raw model. */
export const DEFAULT_PROJECT = 'default';

/** Everyone, where the server is open. */
export const OPEN: Principal = Object.freeze({
  project: DEFAULT_PROJECT,
  scopes: Object.freeze(['chat', 'models:read', 'sessions:read', 'sessions:write'] as const),
});
