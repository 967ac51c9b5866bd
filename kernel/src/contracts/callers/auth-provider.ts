import { defineExtensionPoint } from '../../host/plugin/extension-point.js';
import type { Principal } from './principal.js';

/**
 * Identifies callers by their credentials. Discipline: in file order, the first result that is not
 * `undefined` decides.
 *
 * 1. A transport reads the credentials of a request before anything else.
 * 2. It asks the providers in turn. `undefined` means the credential is not this provider's. A
 *    refusal is final.
 * 3. A credential that no provider claims is refused. Without any provider the server is open.
 * 4. The same credential has the same result as long as nothing has changed.
 * 5. A missing or malformed credential is refused or not claimed. A provider throws only if it
 *    cannot decide, for example because a key server is unreachable: the caller then gets 503.
 * 6. A transport asks again while a request runs, every few seconds, and ends it when the
 *    credential is refused (S-62).
 * 7. When the signal aborts, the caller has disconnected and the result is not used.
 *
 * @public
 */
export interface AuthProvider {
  authenticate(credentials: Credentials, signal: AbortSignal): Promise<AuthResult | undefined> | AuthResult | undefined;
}

/** What a request presents to identify its caller. @public */
export interface Credentials {
  /** The token of `Authorization: Bearer`, or of a WebSocket's sub-protocol, if there is one. */
  readonly bearer: string | undefined;
  /** All headers of the request, by lower-case name: keys, cookies and signatures are there. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** The answer of a provider that knows the credential: the caller, or a refusal. @public */
export type AuthResult =
  | {
      readonly principal: Principal;
      /** For a credential that works once: authenticates what it began again, while that lasts. */
      readonly renew?: () => Promise<AuthResult> | AuthResult;
    }
  /** The reason, for the log only: callers always get the same message. Without the credential. */
  | {
      readonly refused: string;
      /** It was valid and has expired. A request that began before may end. */
      readonly expired?: boolean;
    };

/** The extension point of auth providers: `agent.auth-provider`, in file order. @public */
export const AuthProviders = defineExtensionPoint<AuthProvider>('agent.auth-provider', {
  discipline: 'in-order',
  shape: { authenticate: 'function' },
});
