import { type Clock, type IdSource, type Logger, parseSize } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import { wait } from '../base/wait.js';
import type { Incoming, Receipt } from '../platform/platform.js';
import type { ChannelState, Values } from '../state/channel-state.js';
import { KEYS } from '../state/keys.js';
import { Sequence } from '../state/sequence.js';
import type { Admission } from './admission.js';

/** Milliseconds between two looks at what other servers took. */
const LOOK = 1_000;
/** What waits at most. */
const MAX_WAITING = 1_000;

/** A delivery, or a change that an operator asked for. */
export type Relayed =
  | { readonly messages: readonly Incoming[] }
  | { readonly approve: string }
  | { readonly retry: string }
  | { readonly drop: string };

interface RelayDependencies {
  readonly entry: string;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
  readonly state: ChannelState;
  readonly admission: Admission;
  /** As the option: what may wait. */
  readonly waiting: string;
}

/**
 * The way from a server on standby to the one that has the platform.
 *
 * 1. A server on standby stores each delivery under a key of its own, then answers the platform. It
 *    decides only whose messages are heard.
 * 2. The server that has the platform looks every second, and takes each delivery as its own. The
 *    transaction that stores a message removes the delivery.
 */
export class Relay {
  readonly #deps: RelayDependencies;
  readonly #sequence: Sequence;
  /** What waits, as far as this server knows. It looks once a second at most. */
  #waiting = { since: Number.NEGATIVE_INFINITY, count: 0, size: 0 };

  constructor(deps: RelayDependencies) {
    this.#deps = deps;
    this.#sequence = new Sequence(deps.clock);
  }

  /** @throws TurnError `overloaded`; Error if the store fails */
  async receive(messages: readonly Incoming[], state: Values): Promise<readonly Receipt[]> {
    const admitted = await Promise.all(messages.map((message) => this.#deps.admission.admit(message)));
    const left = messages.filter((_, index) => admitted[index] !== 'ignored');
    if (left.length > 0) await this.put({ messages: left }, state);
    else await this.#deps.state.store(state);
    return admitted.map((kind) => (kind === 'heard' ? 'taken' : kind));
  }

  /** @param state stored with it. @throws TurnError `overloaded`; Error if the store fails */
  async put(relayed: Relayed, state: Values = {}): Promise<void> {
    const { entry, clock, ids, waiting, state: channelState } = this.#deps;
    const key = `${KEYS.relayed}${this.#sequence.next()}-${ids.base62(20)}`;
    const { values, size } = channelState.encode(key, relayed);
    const now = clock.monotonic();
    if (now - this.#waiting.since >= LOOK)
      this.#waiting = { since: now, ...(await channelState.measure(KEYS.relayed, MAX_WAITING)) };
    const before = this.#waiting;
    if (before.count >= MAX_WAITING || before.size + size > parseSize(waiting)) {
      const limits = `\`${entry}.waiting\` (${waiting}) or ${MAX_WAITING} deliveries`;
      throw new TurnError('overloaded', `More waits for the server that has the platform than ${limits}.`, { retryAfter: 1 });
    }
    before.count += 1;
    before.size += size;
    await channelState.store({ ...state, ...values });
  }

  /** Takes what other servers stored, again and again. Never rejects. */
  async collect(take: (relayed: Relayed, removal: Values) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, log, state } = this.#deps;
    for (let isFailing = false; !signal.aborted; await wait(clock, LOOK, signal)) {
      try {
        for await (const { key, value, pieces } of state.all<Relayed>(KEYS.relayed)) {
          if (signal.aborted) return;
          await take(value, state.removal(`${KEYS.relayed}${key}`, pieces));
        }
        isFailing = false;
      } catch (err) {
        if (!isFailing) log.warn({ err }, 'what other servers took waits, because the store failed; it is tried again');
        isFailing = true;
      }
    }
  }
}
