import type { PluginContext } from '@plugboard/kernel';
import type { Budget } from '@plugboard/kernel/contracts';
import type { ChannelAgents } from './chats/agents.js';
import { Chats } from './chats/chats.js';
import type { ChannelOptions } from './platform/options.js';
import type { Platform } from './platform/platform.js';
import { Admission } from './receiving/admission.js';
import { Inbox } from './receiving/inbox.js';
import { Pairing } from './receiving/pairing.js';
import { FailedReplies } from './replies/failed-replies.js';
import { Outbox } from './replies/outbox.js';
import { Pacing } from './replies/pacing.js';
import { Sender } from './replies/sender.js';
import type { ChannelState } from './state/channel-state.js';
import { KEYS } from './state/keys.js';
import { Sequence } from './state/sequence.js';
import { WaitingBudget } from './state/waiting-budget.js';

interface ActiveChannelDependencies {
  readonly ctx: PluginContext<ChannelOptions>;
  readonly platform: Platform;
  readonly agents: ChannelAgents;
  readonly state: ChannelState;
  readonly budget: Budget;
}

/** What runs at the one server that has the platform: inbox, chats, outbox. */
export class ActiveChannel {
  readonly inbox: Inbox;
  readonly pairing: Pairing;
  readonly chats: Chats;
  readonly outbox: Outbox;
  readonly failed: FailedReplies;
  readonly sender: Sender;
  readonly #state: ChannelState;
  readonly #sequence: Sequence;
  readonly #budget: WaitingBudget;

  constructor({ ctx, platform, agents, state, budget }: ActiveChannelDependencies) {
    const { clock, ids, log, config } = ctx;
    const waiting = new WaitingBudget(budget);
    const sequence = new Sequence(clock);
    const pacing = new Pacing(clock);
    this.failed = new FailedReplies(state, clock);
    const outbox: Outbox = new Outbox(state, waiting, this.failed, (reply) => this.sender.add(reply));
    this.sender = new Sender({ platform, outbox, pacing, clock, ids, log });
    this.chats = new Chats({ ctx, platform, agents, state, outbox, pacing });
    this.pairing = new Pairing(state, clock, ids);
    this.inbox = new Inbox({
      ctx,
      platform,
      admission: new Admission(config, this.pairing, clock),
      pairing: this.pairing,
      state,
      sequence,
      budget: waiting,
      outbox,
      chats: this.chats,
    });
    this.outbox = outbox;
    this.#state = state;
    this.#sequence = sequence;
    this.#budget = waiting;
  }

  /** Reads what earlier lives, or other servers, left. Nothing runs yet. */
  async load(): Promise<void> {
    const onSeq = (seq: string) => this.#sequence.seen(seq);
    await this.failed.load();
    await this.pairing.load();
    await this.outbox.load(onSeq);
    await this.chats.load(this.#budget, onSeq);
  }

  start(): void {
    this.sender.start();
    this.chats.start();
  }

  /** Begins no further message. */
  close(): void {
    this.chats.close();
  }

  /**
   * Lets turns that run end, until the signal aborts.
   * @returns how many were cut. Their messages run after the next start, or at the next server.
   */
  async stop(signal: AbortSignal): Promise<number> {
    const cut = await this.chats.stop(signal);
    await this.#state.store({ [KEYS.stopped]: true }).catch(() => {}); // it then counts as a crash
    await this.sender.stop(signal);
    return cut;
  }

  /** Another server may have the platform: ends at once, and leaves everything to that one. */
  async lose(): Promise<void> {
    const now = AbortSignal.abort();
    await Promise.all([this.chats.stop(now), this.sender.stop(now)]);
    this.#budget.releaseAll();
  }
}
