import type { Clock } from '@plugboard/kernel';
import { Throttle } from '../base/throttle.js';
import type { ChannelOptions } from '../platform/options.js';
import type { Incoming } from '../platform/platform.js';
import { type Pairing, pairingNotice } from './pairing.js';

/**
 * What becomes of a message before it costs anything. `ignored` is not for the agent; the sender of
 * `refused` may not write to it.
 */
export type Admitted = 'heard' | 'ignored' | 'refused';

/** Milliseconds until the same sender is told again. */
const TOLD_AGAIN = 60_000;

/** Decides who is heard (CH-4, CH-7). */
export class Admission {
  readonly #options: Pick<ChannelOptions, 'pairing' | 'allow' | 'groups'>;
  readonly #pairing: Pairing;
  readonly #told: Throttle;

  constructor(options: Pick<ChannelOptions, 'pairing' | 'allow' | 'groups'>, pairing: Pairing, clock: Clock) {
    this.#options = options;
    this.#pairing = pairing;
    this.#told = new Throttle(clock, TOLD_AGAIN);
  }

  /** @throws Error if the state cannot be read: a look-up that fails is no stranger. */
  async admit(message: Incoming): Promise<Admitted> {
    const { groups = 'mention' } = this.#options;
    const { isPrivate, isAddressed, sender } = message;
    if (!isPrivate && (groups === 'off' || (groups === 'mention' && !isAddressed))) return 'ignored';
    return (await this.#isKnown(sender.id)) ? 'heard' : 'refused';
  }

  /** The notice for the chat of a refused message. Undefined if there is none. */
  async notice(message: Incoming): Promise<string | undefined> {
    const { isPrivate, isAddressed, sender, chat } = message;
    const canPair = this.#options.pairing && isAnswerable(message);
    // Where everything is for the agent, a stranger who talks to somebody else is not bothered.
    if (!canPair || !(isPrivate || isAddressed) || !this.#told.allows(`${chat}\n${sender.id}`)) return undefined;
    return pairingNotice(this.#pairing, message, isPrivate);
  }

  async #isKnown(sender: string): Promise<boolean> {
    const { pairing, allow } = this.#options;
    if (allow?.includes(sender)) return true;
    if (pairing) return this.#pairing.isPaired(sender);
    return allow === undefined;
  }
}

/** The press of a button is no message: nothing is said. */
function isAnswerable({ press, stops }: Incoming): boolean {
  return press === undefined && stops === undefined;
}
