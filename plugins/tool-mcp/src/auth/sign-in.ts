import { extractWWWAuthenticateParams } from '@modelcontextprotocol/client';
import type { Clock } from '@plugboard/kernel';
import { type Account, HostPolicy } from '@plugboard/kernel/contracts';
import { currentExchange, type Fetch } from '../http/fetch.js';
import type { HttpFailure } from '../http/http-failure.js';
import { timeLimit, unlessAborted, withOwnSignal } from '../protocol/own-signal.js';
import { authFetch } from './auth-fetch.js';
import { discover, type TokenSource } from './discovery.js';
import { missingScope, otherIssuer, signInFailure } from './errors.js';
import { oneAtATime } from './one-at-a-time.js';
import { type AuthConfig, requestToken } from './request-token.js';

/** Milliseconds for finding the authorization server and getting a token. Shorter than a start. */
const SIGN_IN_LIMIT = 8000;
/** Milliseconds before its end that a token is replaced, or half its life if that is shorter. */
const RENEW_BEFORE = 30_000;
/** Milliseconds after a failure that calls fail at once, so that they do not flood the server. */
const FAILURE_PAUSE = 1000;
/** Scopes that are asked for, and the characters of one (S-75). */
const MAX_SCOPES = 100;
const MAX_SCOPE_LENGTH = 200;
/** Tokens that are removed from texts of the server. */
const MAX_REMEMBERED = 3;

interface Token {
  readonly value: string;
  readonly scopes: ReadonlySet<string>;
  /** On the monotonic clock. */
  readonly renewAt: number;
  readonly endsAt: number;
}

/** What the server said with 401 or 403. */
interface Challenge {
  readonly error: string | undefined;
  readonly metadataUrl: URL | undefined;
  readonly scopes: readonly string[];
  readonly description: string;
}

/** The authorization server that the secret may go to. */
export interface TrustedIssuer {
  /** Undefined before the first one was found. @throws if that cannot be read. */
  get(): string | undefined;
  /** Called before the secret goes to the first one. @throws if it cannot be stored. */
  remember(issuer: string): void;
}

export interface SignInOptions {
  /** The address of the MCP server. */
  readonly url: URL;
  readonly auth: AuthConfig;
  readonly allowPrivate: readonly string[];
  readonly trusted: TrustedIssuer;
  readonly clock: Clock;
  readonly newAccount: () => Account;
  readonly redact: (text: string) => string;
}

/**
 * Signs in to one MCP server with client credentials (MCP-12, MCP-13).
 *
 * 1. The first request has no token. The server answers 401, and says where its metadata are.
 * 2. They name the authorization server, which gives a token. Requests have it from then on.
 * 3. A token is replaced before it ends, or when the server refuses it; one request at a time, also
 *    for many calls. Each request is sent once more with a new token, and once more for scopes that
 *    it lacks (403).
 * 4. The secret goes to one authorization server. A failure deletes nothing: the next request that
 *    needs a token tries again.
 */
export class SignIn {
  readonly #options: SignInOptions;
  readonly #clock: Clock;
  readonly #hosts: HostPolicy;
  #source: TokenSource | undefined;
  #token: Token | undefined;
  /** The last values, without the secrets of the configuration. */
  #values: readonly string[] = [];
  #failure: { readonly error: HttpFailure; readonly until: number } | undefined;
  /** The last request for a token. Never rejects. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: SignInOptions) {
    const { url, auth, allowPrivate, clock } = options;
    this.#options = options;
    this.#clock = clock;
    const named = auth.issuer === undefined ? [] : [new URL(auth.issuer)];
    this.#hosts = new HostPolicy({ named, allowPrivate: [HostPolicy.hostOf(url), ...allowPrivate] });
  }

  /** Removes the tokens from a text, because the server may repeat them. */
  redact(text: string): string {
    return this.#values.reduce((rest, value) => rest.replaceAll(value, '[redacted]'), this.#options.redact(text));
  }

  /** `fetch` with a token. @param stopping aborted when the entry stops. */
  authorize(fetch: Fetch, stopping: AbortSignal): Fetch {
    return async (target, init = {}) => {
      const signal = init.signal ?? stopping;
      let token = await this.#usable(stopping, signal);
      let isRenewed = false;
      let isWidened = false;
      for (;;) {
        const response = await fetch(target, withToken(init, token));
        const challenge = challengeOf(response);
        if (response.status === 401 && !isRenewed) isRenewed = true;
        else if (response.status === 403 && lacksScope(challenge)) {
          if (isWidened || covers(token, challenge.scopes))
            throw missingScope(challenge.scopes, this.redact(challenge.description));
          isWidened = true;
        } else return response;
        await drain(response);
        token = await this.#renew(token, challenge, stopping, signal);
      }
    };
  }

  /** The token in use, or another one if it ends soon; undefined before the server wanted one. */
  async #usable(stopping: AbortSignal, signal: AbortSignal): Promise<Token | undefined> {
    const token = this.#token;
    if (!token || this.#clock.monotonic() < token.renewAt) return token;
    try {
      return await this.#renew(token, undefined, stopping, signal);
    } catch (error) {
      if (signal.aborted || this.#clock.monotonic() >= token.endsAt) throw error;
      return token;
    }
  }

  /**
   * Gets another token than the one that was used, which may be there already.
   * @param challenge why; undefined if it ends soon.
   */
  #renew(used: Token | undefined, challenge: Challenge | undefined, stopping: AbortSignal, signal: AbortSignal): Promise<Token> {
    const wanted = lacksScope(challenge) ? challenge.scopes : [];
    const renewed = this.#queue.then(async () => {
      signal.throwIfAborted();
      const token = this.#token;
      if (token && token !== used && covers(token, wanted)) return token;
      if (this.#failure && this.#clock.monotonic() < this.#failure.until) throw this.#failure.error;
      return this.#signIn(used, challenge, stopping);
    });
    this.#queue = renewed.catch(() => {});
    return withOwnSignal(signal, (own) => unlessAborted(renewed, own));
  }

  async #signIn(used: Token | undefined, challenge: Challenge | undefined, stopping: AbortSignal): Promise<Token> {
    const limit = timeLimit(this.#clock, SIGN_IN_LIMIT, 'the time is over', stopping);
    const { url, clock, newAccount } = this.#options;
    const fetch = authFetch({ url, hosts: this.#hosts, clock, newAccount }, limit.signal, SIGN_IN_LIMIT / 1000);
    // The server may have moved to another authorization server since it was asked.
    const known = challenge ? undefined : this.#source;
    let issuer = known?.issuer;
    const choose = (named: readonly string[]) => {
      issuer = this.#choose(named);
      return issuer;
    };
    try {
      const source = known ?? (await discover(url, challenge?.metadataUrl, choose, fetch));
      this.#trust(source.issuer);
      this.#source = source;
      this.#token = await this.#request(source, this.#scopesFor(source, used, challenge), fetch);
      this.#failure = undefined;
      return this.#token;
    } catch (error) {
      stopping.throwIfAborted();
      const failure = signInFailure(error, issuer, (text) => this.redact(text));
      this.#failure = { error: failure, until: this.#clock.monotonic() + FAILURE_PAUSE };
      throw failure;
    } finally {
      limit.cancel();
    }
  }

  /** The authorization server that the secret is for, of those that the MCP server names. */
  #choose(named: readonly string[]): string {
    const { url, auth, trusted } = this.#options;
    const expected = auth.issuer ?? trusted.get() ?? this.#source?.issuer;
    const [first] = named;
    // Servers of 2025-03-26 name none: theirs has the same origin.
    if (first === undefined) return expected ?? new URL('/', url).href;
    if (expected === undefined) return first;
    const found = named.find((issuer) => isSame(issuer, expected));
    if (found === undefined) throw otherIssuer(first, expected, auth.issuer !== undefined);
    return found;
  }

  #trust(issuer: string): void {
    const { auth, trusted } = this.#options;
    if (auth.issuer === undefined && trusted.get() === undefined) trusted.remember(issuer);
  }

  /** The scopes to ask for: all that were asked for before, and what the server wants besides. */
  #scopesFor(source: TokenSource, used: Token | undefined, challenge: Challenge | undefined): readonly string[] {
    const { scopes: configured } = this.#options.auth;
    const wanted = challenge?.scopes ?? [];
    const before = used?.scopes ?? configured;
    if (before) return limited([...before, ...(lacksScope(challenge) ? wanted : [])]);
    return limited(wanted.length > 0 ? wanted : source.scopes);
  }

  async #request(source: TokenSource, scopes: readonly string[], fetch: Fetch): Promise<Token> {
    const { auth } = this.#options;
    const key = JSON.stringify([source.issuer, auth.clientId, source.resource]);
    const { value, scopes: granted, lifetime } = await oneAtATime(key, () => requestToken(auth, source, scopes, fetch));
    this.#values = [value, ...this.#values].slice(0, MAX_REMEMBERED);
    const life = lifetime === undefined ? Number.POSITIVE_INFINITY : Math.max(lifetime, 0) * 1000;
    const now = this.#clock.monotonic();
    const renewAt = now + life - Math.min(RENEW_BEFORE, life / 2);
    return { value, scopes: new Set([...scopes, ...granted]), renewAt, endsAt: now + life };
  }
}

function withToken(init: RequestInit, token: Token | undefined): RequestInit {
  if (!token) return init;
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${token.value}`);
  return { ...init, headers };
}

/** What a 401 or 403 says (RFC 6750, RFC 9728). */
function challengeOf(response: Response): Challenge {
  const { resourceMetadataUrl, scope = '', error, errorDescription = '' } = extractWWWAuthenticateParams(response);
  const scopes = limited(scope.split(/\s+/));
  return { metadataUrl: resourceMetadataUrl, scopes, error, description: errorDescription };
}

function lacksScope(challenge: Challenge | undefined): challenge is Challenge {
  return challenge?.error === 'insufficient_scope';
}

function covers(token: Token | undefined, scopes: readonly string[]): boolean {
  return token !== undefined && scopes.every((scope) => token.scopes.has(scope));
}

/** Each once, and no more than are sent. */
function limited(scopes: readonly string[]): readonly string[] {
  const valid = scopes.filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope) && scope.length <= MAX_SCOPE_LENGTH);
  return [...new Set(valid)].slice(0, MAX_SCOPES);
}

/** The answer is not needed, and its connection is given back. */
async function drain(response: Response): Promise<void> {
  await response.text().catch(() => {});
  const exchange = currentExchange.getStore();
  if (exchange) exchange.failure = undefined;
}

/** Two names of one issuer differ by a slash at the end at most. */
function isSame(issuer: string, other: string): boolean {
  return issuer.replace(/\/$/, '') === other.replace(/\/$/, '');
}
