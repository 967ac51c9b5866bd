import type { Clock, IdSource } from '@plugboard/kernel';
import type { Channel } from '@plugboard/kernel/contracts';
import type { ActiveChannel } from './active-channel.js';
import { Pairing } from './receiving/pairing.js';
import type { Relay } from './receiving/relay.js';
import { FailedReplies } from './replies/failed-replies.js';
import type { ChannelState } from './state/channel-state.js';

interface OperatorsDependencies {
  /** Undefined: another server has the platform. */
  readonly active: () => ActiveChannel | undefined;
  readonly relay: Relay;
  readonly state: ChannelState;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/**
 * What operators see and change. At a server on standby the lists come from the state, and a change
 * is relayed to the server that has the platform.
 */
export class Operators implements Pick<Channel, 'pairing' | 'outbox'> {
  readonly #deps: OperatorsDependencies;

  constructor(deps: OperatorsDependencies) {
    this.#deps = deps;
  }

  readonly pairing: NonNullable<Channel['pairing']> = {
    requests: async () => (await this.#pairing()).requests(),
    paired: async () => (await this.#pairing()).paired(),
    approve: async (code) => {
      const { active, relay, clock } = this.#deps;
      const own = active();
      if (own) return own.inbox.approve(code);
      const request = (await this.#pairing()).find(code);
      if (!request) return undefined;
      await relay.put({ approve: code });
      return { sender: request.sender, name: request.name, since: clock.now() };
    },
    remove: async (sender) => (await this.#pairing()).remove(sender),
  };

  readonly outbox: Required<NonNullable<Channel['outbox']>> = {
    failed: async () => (await this.#failed()).list(),
    send: (id) => this.#change('retry', id),
    drop: (id) => this.#change('drop', id),
    // At a server on standby none wait.
    sendWaiting: () => this.#deps.active()?.sender.sendNow() ?? [],
  };

  async #change(how: 'retry' | 'drop', id: string): Promise<boolean> {
    const { active, relay } = this.#deps;
    const own = active();
    if (own) return own.outbox[how](id);
    if (!(await (await this.#failed()).find(id))) return false;
    await relay.put(how === 'retry' ? { retry: id } : { drop: id });
    return true;
  }

  async #pairing(): Promise<Pairing> {
    const { active, state, clock, ids } = this.#deps;
    const own = active();
    if (own) return own.pairing;
    const stored = new Pairing(state, clock, ids);
    await stored.load();
    return stored;
  }

  async #failed(): Promise<FailedReplies> {
    const { active, state, clock } = this.#deps;
    const own = active();
    if (own) return own.failed;
    const stored = new FailedReplies(state, clock);
    await stored.load();
    return stored;
  }
}
