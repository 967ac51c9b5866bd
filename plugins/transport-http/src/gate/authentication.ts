import {
  type AuthProvider,
  type AuthResult,
  DEFAULT_PROJECT,
  type Extensions,
  inject,
  injectable,
  LOGGER,
  type Logger,
  OPEN,
  type Principal,
} from '@plugboard/kernel';
import { authUnavailable, unauthorized } from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';

/** Where the plugin's `register` leaves its reads for the class below. */
export const AUTH_PROVIDERS = Symbol('transport-http.auth-providers');

/** Whoever calls a route that asks for no credential: may nothing. */
export const NOBODY: Principal = Object.freeze({ project: DEFAULT_PROJECT, scopes: Object.freeze([]) });

/** Bytes of a credential; a provider may take less. */
const CREDENTIAL_LIMIT = 8192;

/** Tells who calls, by the one way there is to say it: `Authorization: Bearer`. */
@injectable()
export class Authentication {
  readonly #providers: Extensions<AuthProvider>;
  readonly #log: Logger;

  constructor(@inject(AUTH_PROVIDERS) providers: Extensions<AuthProvider>, @inject(LOGGER) log: Logger) {
    this.#providers = providers;
    this.#log = log;
  }

  /**
   * Whether nobody is asked for a credential. Whatever comes as one is ignored then: clients of this protocol always send some
   * key.
   */
  get open(): boolean {
    return this.#providers.all().length === 0;
  }

  /** @throws HttpError: 401 where there is no valid credential, 503 where a provider cannot tell. */
  async principal(exchange: Exchange): Promise<Principal> {
    if (this.open) return OPEN;
    const answer = await this.#answer(exchange);
    if ('principal' in answer) return answer.principal;
    exchange.note({ refused: answer.refused });
    throw unauthorized();
  }

  async #answer(exchange: Exchange): Promise<AuthResult> {
    const bearer = bearerOf(exchange.req.rawHeaders);
    if (typeof bearer !== 'string') return bearer;
    for (const { value: provider, entry } of this.#providers) {
      const answer = await this.#ask(provider, entry, bearer, exchange);
      if (answer) return answer;
    }
    return { refused: 'no provider knows the credential' };
  }

  /** A provider that breaks has not said that the caller is known: nobody is let in. */
  async #ask(provider: AuthProvider, entry: string, bearer: string, exchange: Exchange): Promise<AuthResult | undefined> {
    try {
      return await provider.authenticate({ bearer }, exchange.signal);
    } catch (error) {
      this.#log.error({ err: error, request_id: exchange.requestId, provider: entry }, 'an auth provider failed');
      throw authUnavailable();
    }
  }
}

/** The credential, or why there is none. Node hides a second Authorization header; only the raw headers show it. */
function bearerOf(rawHeaders: readonly string[]): string | { readonly refused: string } {
  let header: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== 'authorization') continue;
    if (header !== undefined) return { refused: 'two Authorization headers' };
    header = rawHeaders[at + 1];
  }
  if (header === undefined) return { refused: 'no Authorization header' };
  if (header.length > CREDENTIAL_LIMIT) return { refused: 'the credential is too long' };
  const [scheme = '', ...values] = header.split(' ').filter((word) => word !== '');
  const [value] = values;
  if (scheme.toLowerCase() !== 'bearer' || value === undefined || values.length > 1) return { refused: 'a malformed credential' };
  return value;
}
