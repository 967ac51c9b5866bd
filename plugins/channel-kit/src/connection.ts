import type { Clock, Logger } from '@plugboard/kernel';
import type { ChannelStatus, Timer } from '@plugboard/kernel/contracts';
import { backoff } from './base/backoff.js';
import { reasonOf } from './base/reason.js';
import { timeOf } from './base/time.js';
import { wait } from './base/wait.js';

/** Milliseconds before `run` is called again. */
const BACKOFF = { first: 1_000, most: 60_000 };
/** Milliseconds that an entry that was connected stays ready without its platform. */
const STAYS_READY = 60_000;

/** Whether the platform is reached (CH-9). */
export class Connection {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #onConnected: () => void;
  #state: 'connecting' | 'connected' | 'failed' = 'connecting';
  #since: number;
  #isStandby = false;
  #account: string | undefined;
  #reason: string | undefined;
  /** When the platform was lost, while the entry stays ready. */
  #lostAt = 0;
  #readyUntil: Timer | undefined;
  /** Whether this call of `run` reached it. */
  #wasConnected = false;

  constructor(clock: Clock, log: Logger, onConnected: () => void) {
    this.#clock = clock;
    this.#log = log;
    this.#onConnected = onConnected;
    this.#since = clock.now();
  }

  /** For `Channel.status`. */
  get status(): Pick<ChannelStatus, 'account' | 'state' | 'reason' | 'since'> {
    const isLost = this.#reason !== undefined && this.#state === 'connected';
    const lost = `lost at ${timeOf(this.#lostAt)}, failed if that lasts ${STAYS_READY / 1_000} s: ${this.#reason}`;
    const state = this.#isStandby && this.#state !== 'failed' ? 'standby' : this.#state;
    return { account: this.#account, state, reason: isLost ? lost : this.#reason, since: this.#since };
  }

  /** Whether another server has the platform. */
  set isStandby(isStandby: boolean) {
    this.#isStandby = isStandby;
    this.#since = this.#clock.now();
  }

  connected(account?: string): void {
    this.#account = account ?? this.#account;
    this.#wasConnected = true;
    this.#readyUntil?.cancel();
    if (this.#reason !== undefined) this.#log.info(`the platform is reached again`);
    const isNew = this.#state !== 'connected' || this.#reason !== undefined;
    this.#reason = undefined;
    if (this.#state !== 'connected') this.#become('connected');
    if (isNew) this.#onConnected();
  }

  failed(reason: string): void {
    if (this.#reason === undefined) this.#log.warn(`the platform is not reached, and is tried again: ${reason}`);
    const isFirst = this.#reason === undefined;
    this.#reason = reason;
    if (this.#state !== 'connected') this.#become('failed');
    else if (isFirst) {
      this.#lostAt = this.#clock.now();
      this.#readyUntil = this.#clock.after(STAYS_READY, () => this.#become('failed'));
    }
  }

  /** Calls `run` until the signal aborts, however often it fails. Never rejects. */
  async keep(run: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    for (let attempts = 1; !signal.aborted; attempts++) {
      try {
        await run(signal);
        if (!signal.aborted) this.failed('it ended');
      } catch (error) {
        if (!signal.aborted) this.failed(reasonOf(error));
      }
      if (this.#wasConnected) attempts = 1;
      this.#wasConnected = false;
      await wait(this.#clock, backoff(BACKOFF, attempts), signal);
    }
    this.#readyUntil?.cancel();
    this.#reason = undefined;
    this.#become('connecting');
  }

  #become(state: 'connecting' | 'connected' | 'failed'): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#since = this.#clock.now();
  }
}
