import type { Clock, PluginContext } from '@plugboard/kernel';
import { OPEN, type Timer } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { unauthorized } from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';
import { Exchanges } from '../exchange/exchanges.js';
import { Replies } from '../exchange/replies.js';
import { ANONYMOUS } from '../limits/caller.js';
import { Authentication } from './authentication.js';

/** Milliseconds between two checks. */
const INTERVAL = 5_000;

/** Ends requests whose credential is revoked (S-62). Owners check upgraded connections. */
export class Revocation {
  readonly #clock: Clock;
  readonly #exchanges: Exchanges;
  readonly #authentication: Authentication;
  readonly #replies: Replies;
  /** Those whose provider has not answered yet. */
  readonly #checking = new WeakSet<Exchange>();
  #timer: Timer | undefined;

  constructor(
    @inject(CONTEXT) { clock }: Pick<PluginContext, 'clock'>,
    @inject(Exchanges) exchanges: Exchanges,
    @inject(Authentication) authentication: Authentication,
    @inject(Replies) replies: Replies,
  ) {
    this.#clock = clock;
    this.#exchanges = exchanges;
    this.#authentication = authentication;
    this.#replies = replies;
  }

  start(): void {
    this.#timer = this.#clock.after(INTERVAL, () => {
      for (const exchange of this.#exchanges.running()) void this.#check(exchange);
      this.#timer?.refresh();
    });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Never rejects. */
  async #check(exchange: Exchange): Promise<void> {
    const { principal, isUpgrade, hasEnded } = exchange;
    if (principal === undefined || principal === ANONYMOUS || principal === OPEN || isUpgrade || hasEnded) return;
    if (this.#checking.has(exchange)) return;
    this.#checking.add(exchange);
    if (await this.#authentication.isRevoked(exchange)) this.#replies.revoke(exchange, unauthorized());
    this.#checking.delete(exchange);
  }
}
