import { defineExtensionPoint } from '../host/plugin/extension-point.js';
import type { Principal } from './principal.js';

/**
 * A way to tell who calls. Discipline: asked in file order, the first that answers decides, and nobody after it is asked.
 *
 * 1. A transport takes the credentials off a request, before it reads anything else of it.
 * 2. It asks the providers in turn. `undefined` means: not mine. A refusal is final.
 * 3. What is nobody's is refused. Where there is no provider at all, the server is open.
 */
export interface AuthProvider {
  authenticate(credentials: Credentials, signal: AbortSignal): Promise<AuthResult | undefined> | AuthResult | undefined;
}

export interface Credentials {
  /** What stood behind `Bearer`. */
  readonly bearer: string;
}

export type AuthResult =
  | { readonly principal: Principal }
  /** Why, for the log only: the caller is always told the same. */
  | { readonly refused: string };

export const AuthProviders = defineExtensionPoint<AuthProvider>('agent.auth-provider', { discipline: 'in-order' });
