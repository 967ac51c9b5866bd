import type { Clock, Logger } from '@plugboard/kernel';
import { errors, type FlattenedJWSInput, type JWSHeaderParameters } from 'jose';
import { KeysUnavailable, OtherIssuer } from './errors.js';
import type { Issuer, Keys } from './issuer.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/**
 * Milliseconds for which keys are used before they are fetched again. This is also how long a
 * withdrawn key may still work.
 */
const FRESH = 10 * MINUTE;
/** Milliseconds for which they are used while the issuer does not answer. */
const USABLE = 24 * 60 * MINUTE;
/**
 * Minimum milliseconds between two requests, so that tokens with invented keys do not cause
 * requests to the issuer.
 */
const PAUSE = 30 * SECOND;
/** The same while there are no keys: callers then wait for the issuer. */
const PAUSE_WITHOUT_KEYS = 5 * SECOND;
/** Time limit of a request in milliseconds. */
const LIMIT = 5 * SECOND;

interface Held {
  readonly keys: Keys;
  /** When they were fetched, on the monotonic clock. */
  readonly since: number;
}

/**
 * The keys of the issuer.
 *
 * 1. They are fetched at the start, again if they are ten minutes old when they are needed, and if
 *    a token names an unknown key.
 * 2. Concurrent requests for keys share one answer. The issuer is asked at most once in 30 seconds.
 * 3. If it does not answer, the last keys are used for up to 24 hours. After that, or without any
 *    keys, every token is refused.
 */
export class KeyCache {
  readonly #issuer: Issuer;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  #held: Held | undefined;
  /** Time of the last request to the issuer, on the monotonic clock. */
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;
  /** The error of the last request, if it failed. */
  #failure: KeysUnavailable | undefined;

  constructor(issuer: Issuer, clock: Clock, log: Logger) {
    this.#issuer = issuer;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Fetches the keys for the first time. Logs an issuer that does not answer, and returns an error
   * of one with another name.
   */
  async start(signal: AbortSignal): Promise<OtherIssuer | undefined> {
    signal.addEventListener('abort', () => this.stop(), { once: true });
    await this.#ask();
    return this.#failure instanceof OtherIssuer ? this.#failure : undefined;
  }

  stop(): void {
    this.#stopping.abort(new Error('the server stops'));
  }

  /**
   * Returns the key that the header of a token names.
   * @throws KeysUnavailable, or an error of `jose` if no key matches.
   */
  async keyOf(header?: JWSHeaderParameters, token?: FlattenedJWSInput): ReturnType<Keys> {
    if (this.#age >= FRESH) await this.#ask();
    const held = this.#usable();
    try {
      return await held(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    await this.#ask();
    if (this.#failure) throw this.#failure; // the key may be a new one
    return this.#usable()(header, token);
  }

  /** Milliseconds since the keys were fetched. */
  get #age(): number {
    return this.#clock.monotonic() - (this.#held?.since ?? Number.NEGATIVE_INFINITY);
  }

  #usable(): Keys {
    if (this.#held && this.#age < USABLE) return this.#held.keys;
    throw this.#failure ?? new KeysUnavailable('the issuer has not been asked for its keys yet');
  }

  /** Fetches the keys, unless the last request is too recent. Never rejects. */
  #ask(): Promise<void> {
    const pause = this.#held ? PAUSE : PAUSE_WITHOUT_KEYS;
    if (!this.#asking && this.#clock.monotonic() - this.#askedAt >= pause) {
      this.#askedAt = this.#clock.monotonic();
      this.#asking = this.#fetch().finally(() => {
        this.#asking = undefined;
      });
    }
    return this.#asking ?? Promise.resolve();
  }

  async #fetch(): Promise<void> {
    const late = new AbortController();
    const timer = this.#clock.after(LIMIT, () => late.abort(new Error(`no answer for ${LIMIT / SECOND} s`)));
    try {
      const keys = await this.#issuer.keys(AbortSignal.any([late.signal, this.#stopping.signal]));
      this.#held = { keys, since: this.#clock.monotonic() };
      if (this.#failure) this.#log.info('the issuer answers again');
      this.#failure = undefined;
    } catch (error) {
      this.#failed(
        error instanceof KeysUnavailable ? error : new KeysUnavailable('the keys could not be read', { cause: error }),
      );
    } finally {
      timer.cancel();
    }
  }

  /** Logs a failure once, until the issuer answers again. */
  #failed(failure: KeysUnavailable): void {
    if (!this.#failure && !this.#stopping.signal.aborted) {
      const until = this.#held ? 'tokens are checked with its last keys, for up to 24 hours' : 'callers get 503 until they are';
      this.#log.warn(`the issuer's keys cannot be fetched; ${until}: ${failure.message}`);
    }
    this.#failure = failure;
  }
}
