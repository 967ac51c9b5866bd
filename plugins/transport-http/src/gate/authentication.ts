import {
  type AuthProvider,
  AuthProviders,
  type AuthResult,
  type Clock,
  type Credentials,
  type Extensions,
  type Logger,
  type PluginContext,
  type Principal,
} from '@plugboard/kernel';
import { OPEN } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { authUnavailable, unauthorized } from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';

/** Bytes of an Authorization header. Providers may have a lower limit. */
const MAX_CREDENTIAL_BYTES = 8192;

/** Milliseconds between two log lines about a provider that keeps failing. */
const REMINDER = 60_000;

/** Identifies callers by bearer token, or by other headers that a provider understands. */
export class Authentication {
  readonly #providers: Extensions<AuthProvider>;
  readonly #log: Logger;
  readonly #clock: Clock;
  /** The entries of providers whose last answer was an error. */
  readonly #failing = new Map<string, { readonly failures: number; readonly reportedAt: number }>();
  /** How callers with a credential for one use are authenticated again, and by which provider. */
  readonly #renewals = new WeakMap<Exchange, { readonly provider: AuthProvider; renew(): Promise<AuthResult> | AuthResult }>();

  constructor(@inject(CONTEXT) { log, clock, extensions }: PluginContext) {
    this.#clock = clock;
    this.#providers = extensions(AuthProviders);
    this.#log = log;
  }

  /** Whether there is no auth provider: credentials are ignored, as clients always send a key. */
  get open(): boolean {
    return this.#providers.all().length === 0;
  }

  /** @throws HttpError 401 without a valid credential, 503 if a provider fails. */
  principal(exchange: Exchange): Promise<Principal> | Principal {
    return this.open ? OPEN : this.#authenticated(exchange);
  }

  async #authenticated(exchange: Exchange): Promise<Principal> {
    return this.#accepted(await this.#answer(exchange), exchange);
  }

  /** Authenticates the caller of an upgraded connection again. @throws HttpError 401, 503. */
  async again(exchange: Exchange): Promise<Principal> {
    return this.open ? OPEN : this.#accepted(await this.#answerAgain(exchange), exchange);
  }

  /**
   * Whether the credential of a request was revoked since. The caller of a request that has begun
   * may see it end after the credential has expired, and while a provider fails.
   */
  async isRevoked(exchange: Exchange): Promise<boolean> {
    try {
      const answer = await this.#answerAgain(exchange);
      if ('principal' in answer || answer.expired) return false;
      exchange.note({ refused: answer.refused });
      return true;
    } catch {
      return false; // `#ask` has logged it
    }
  }

  #answerAgain(exchange: Exchange): Promise<AuthResult> | AuthResult {
    const renewal = this.#renewals.get(exchange);
    // A reload may have removed the provider.
    const isValid = renewal && this.#providers.all().some(({ value }) => value === renewal.provider);
    return isValid ? renewal.renew() : this.#answer(exchange);
  }

  #accepted(answer: AuthResult, exchange: Exchange): Principal {
    if ('principal' in answer) return answer.principal;
    exchange.note({ refused: answer.refused });
    throw unauthorized();
  }

  async #answer(exchange: Exchange): Promise<AuthResult> {
    const { bearer, refused, isFinal } = bearerOf(exchange);
    if (refused !== undefined && isFinal) return { refused };
    for (const { value: provider, entry } of this.#providers) {
      const answer = await this.#ask(provider, entry, { bearer, headers: exchange.req.headers }, exchange);
      if (!answer) continue;
      if ('principal' in answer && answer.renew) {
        this.#renewals.set(exchange, { provider, renew: answer.renew });
      }
      return answer;
    }
    return { refused: refused ?? 'no auth provider recognises the credential' };
  }

  /** Fails closed if a provider throws. Anyone can cause that: only changes are logged (S-40). */
  async #ask(
    provider: AuthProvider,
    entry: string,
    credentials: Credentials,
    exchange: Exchange,
  ): Promise<AuthResult | undefined> {
    try {
      const answer = await provider.authenticate(credentials, exchange.signal);
      this.#onAnswer(entry);
      return answer;
    } catch (error) {
      if (!exchange.signal.aborted) this.#onFailure(entry, error, exchange.requestId);
      throw authUnavailable();
    }
  }

  #onFailure(provider: string, error: unknown, requestId: string): void {
    const now = this.#clock.monotonic();
    const { failures, reportedAt } = this.#failing.get(provider) ?? { failures: 0, reportedAt: Number.NEGATIVE_INFINITY };
    const isDue = now - reportedAt >= REMINDER;
    this.#failing.set(provider, { failures: failures + 1, reportedAt: isDue ? now : reportedAt });
    if (failures === 0) this.#log.error({ err: error, request_id: requestId, provider }, 'an auth provider failed');
    else if (isDue) this.#log.error({ provider, failures: failures + 1 }, 'an auth provider still fails');
  }

  #onAnswer(provider: string): void {
    const failing = this.#failing.get(provider);
    if (!failing) return;
    this.#failing.delete(provider);
    this.#log.info({ provider, failures: failing.failures }, 'an auth provider works again');
  }
}

/** A bearer token, or why there is none. `isFinal`: no other header can help. */
interface Bearer {
  readonly bearer?: string | undefined;
  readonly refused?: string;
  readonly isFinal?: boolean;
}

/** Returns the bearer token. Node hides a second Authorization header; the raw headers show it. */
function bearerOf({ req: { rawHeaders, headers }, isUpgrade, match, route }: Exchange): Bearer {
  const prefix = isUpgrade ? match?.upgrade?.tokenProtocol : undefined;
  const fromProtocol = prefix === undefined ? undefined : tokenIn(headers['sec-websocket-protocol'], prefix);
  let header: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== 'authorization') continue;
    if (header !== undefined) return { refused: 'two Authorization headers', isFinal: true };
    header = rawHeaders[at + 1];
  }
  if (fromProtocol !== undefined) {
    return header === undefined ? { bearer: fromProtocol } : { refused: 'two credentials', isFinal: true };
  }
  const tokens = route?.tokenHeader === undefined ? [] : valuesOf(rawHeaders, route.tokenHeader);
  if (tokens.length > 0) return oneToken(tokens, header);
  if (header === undefined) return { refused: 'no Authorization header' };
  if (header.length > MAX_CREDENTIAL_BYTES) return { refused: 'the credential is too long', isFinal: true };
  const [scheme = '', ...values] = header.split(' ').filter((word) => word !== '');
  const [bearer] = values;
  if (scheme.toLowerCase() !== 'bearer') return { refused: 'a malformed credential' };
  if (bearer === undefined || values.length > 1) return { refused: 'a malformed credential', isFinal: true };
  return { bearer };
}

/** The token in the sub-protocol that begins with a prefix. */
function tokenIn(protocols: string | undefined, prefix: string): string | undefined {
  const offered = protocols?.split(',').map((protocol) => protocol.trim()) ?? [];
  return offered.find((protocol) => protocol.startsWith(prefix))?.slice(prefix.length);
}

/** All values of a header. @param name lower case. */
function valuesOf(rawHeaders: readonly string[], name: string): readonly string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
}

/**
 * The token in a header of its own. Clients that know two ways to send it may send the same one
 * twice; which of two should count is not for the server to guess.
 */
function oneToken([token = '', ...others]: readonly string[], authorization: string | undefined): Bearer {
  const isSame = authorization === undefined || /^bearer +(\S+) *$/i.exec(authorization)?.[1] === token;
  if (others.length > 0 || !isSame) return { refused: 'two credentials', isFinal: true };
  if (token.length > MAX_CREDENTIAL_BYTES) return { refused: 'the credential is too long', isFinal: true };
  if (!/^\S+$/.test(token)) return { refused: 'a malformed credential', isFinal: true };
  return { bearer: token };
}
