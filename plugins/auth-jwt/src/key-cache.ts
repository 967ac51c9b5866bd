import type { Clock, Logger } from '@plugboard/kernel';
import { CLOCK, inject, injectable, LOGGER } from '@plugboard/kernel/injection';
import { errors, type FlattenedJWSInput, type JWSHeaderParameters } from 'jose';
import { KeysUnavailable, OtherIssuer } from './errors.js';
import type { Issuer, Keys } from './issuer.js';

/** Where the plugin's `register` leaves the issuer for the class below. */
export const ISSUER = Symbol('auth-jwt.issuer');

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Milliseconds for which keys are used without asking again. A key that the issuer withdraws works no longer than that. */
const FRESH = 10 * MINUTE;
/** Milliseconds for which they are used when the issuer cannot be asked. */
const USABLE = 24 * 60 * MINUTE;
/** Milliseconds between two questions, so that tokens with invented keys do not become questions to the issuer. */
const PAUSE = 30 * SECOND;
/** The same while there are no keys at all: callers wait for the issuer then. */
const PAUSE_WITHOUT_KEYS = 5 * SECOND;
/** Milliseconds for an answer. */
const LIMIT = 5 * SECOND;

interface Held {
  readonly keys: Keys;
  /** When they came, on the monotonic clock. */
  readonly since: number;
}

/**
 * The keys of the issuer.
 *
 * 1. They are fetched at the start, again when they are ten minutes old and needed, and when a token names one that is not among them.
 * 2. Whoever needs them meanwhile waits for the same answer. However many need them, the issuer is asked at most once in 30 seconds.
 * 3. When it does not answer, the last keys are used, for up to 24 hours. Then, or where there are none, nobody can be let in.
 */
@injectable()
export class KeyCache {
  readonly #issuer: Issuer;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  #held: Held | undefined;
  /** When the issuer was asked last, on the monotonic clock. */
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;
  /** Why it did not answer, when it was asked last. */
  #failure: KeysUnavailable | undefined;

  constructor(@inject(ISSUER) issuer: Issuer, @inject(CLOCK) clock: Clock, @inject(LOGGER) log: Logger) {
    this.#issuer = issuer;
    this.#clock = clock;
    this.#log = log;
  }

  /** Asks for the keys. An issuer that does not answer is told in the log; one that is not the one that was meant is the answer. */
  async start(signal: AbortSignal): Promise<OtherIssuer | undefined> {
    signal.addEventListener('abort', () => this.stop(), { once: true });
    await this.#ask();
    return this.#failure instanceof OtherIssuer ? this.#failure : undefined;
  }

  stop(): void {
    this.#stopping.abort(new Error('the server stops'));
  }

  /**
   * The key that a token was signed with, as its header names it.
   * @throws KeysUnavailable, or what `jose` throws where no key fits.
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
    if (this.#failure) throw this.#failure; // the key may be a new one, and nobody can tell
    return this.#usable()(header, token);
  }

  /** Milliseconds since the keys came. */
  get #age(): number {
    return this.#clock.monotonic() - (this.#held?.since ?? Number.NEGATIVE_INFINITY);
  }

  #usable(): Keys {
    if (this.#held && this.#age < USABLE) return this.#held.keys;
    throw this.#failure ?? new KeysUnavailable('the issuer has not been asked for its keys yet');
  }

  /** Asks the issuer, unless it was asked just now. Never rejects. */
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

  /** Told once, until it answers again. */
  #failed(failure: KeysUnavailable): void {
    if (!this.#failure && !this.#stopping.signal.aborted) {
      const until = this.#held ? 'tokens are checked with its last keys, for up to 24 hours' : 'callers get 503 until they can';
      this.#log.warn(`the keys of the issuer cannot be had, and ${until}: ${failure.message}`);
    }
    this.#failure = failure;
  }
}
