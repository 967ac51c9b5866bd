import { AgentRuntimes, type Lifecycle, type PluginContext, parseSize } from '@plugboard/kernel';
import { type AgentRuntime, type Channel, type ChannelStatus, Channels, TurnError } from '@plugboard/kernel/contracts';
import { untilAborted } from './base/wait.js';
import { ChannelAgents } from './chats/agents.js';
import { Chats } from './chats/chats.js';
import { Connection } from './connection.js';
import type { ChannelOptions } from './platform/options.js';
import type { ChannelInbox, Incoming, Platform, Receipt } from './platform/platform.js';
import { Admission } from './receiving/admission.js';
import { Inbox } from './receiving/inbox.js';
import { Pairing } from './receiving/pairing.js';
import { FailedReplies } from './replies/failed-replies.js';
import { Outbox } from './replies/outbox.js';
import { Pacing } from './replies/pacing.js';
import { Sender } from './replies/sender.js';
import { ChannelState, type Values } from './state/channel-state.js';
import { Sequence } from './state/sequence.js';
import { WaitingBudget } from './state/waiting-budget.js';

/**
 * A channel over a platform: the value that a plugin's `register` returns, and that its routes hand
 * messages to.
 *
 * 1. Created by `register`, it declares what it reads, and opens nothing.
 * 2. `start` reads what earlier lives left, and goes on with it. It does not wait for the platform.
 * 3. When the server is asked to stop, no further message is taken or begins.
 * 4. `stop` lets turns that run end, until its signal aborts. What is left waits for the next
 *    start.
 *
 * ```ts
 * register(ctx) {
 *   return openChannel(ctx, new MyPlatform(ctx.config));
 * }
 * ```
 */
export class ChannelEntry<To, Kept, Image> implements Lifecycle, Channel, ChannelInbox<To, Image> {
  readonly #ctx: PluginContext<ChannelOptions>;
  readonly #platform: Platform;
  readonly #connection: Connection;
  readonly #sequence: Sequence;
  readonly #budget: WaitingBudget;
  readonly #pairing: Pairing;
  readonly #failed: FailedReplies;
  readonly #outbox: Outbox;
  readonly #sender: Sender;
  readonly #chats: Chats;
  readonly #inbox: Inbox;
  readonly #stopping = new AbortController();
  #isOpen = false;
  #running: Promise<void> | undefined;

  constructor(ctx: PluginContext<ChannelOptions>, platform: Platform<To, Kept, Image>) {
    const { clock, ids, log, config, name, entry } = ctx;
    const runtimes = ctx.extensions<AgentRuntime>(AgentRuntimes);
    this.#ctx = ctx;
    this.#platform = platform as unknown as Platform;
    const state = new ChannelState(ctx.state);
    const sequence = new Sequence(clock);
    const budget = new WaitingBudget(
      ctx.budgets.create({
        name: `messages and replies that wait in ${entry}`,
        unit: 'bytes',
        limit: parseSize(config.waiting),
        setting: `${entry}.waiting`,
      }),
    );
    const pacing = new Pacing(clock);
    const failed = new FailedReplies(state, clock);
    const outbox: Outbox = new Outbox(state, budget, failed, (reply) => this.#sender.add(reply));
    const agents = new ChannelAgents(runtimes, config, { entry: name, platform: platform.name });
    this.#sender = new Sender({ platform: this.#platform, outbox, pacing, clock, ids, log });
    this.#chats = new Chats({ ctx, platform: this.#platform, agents, state, outbox, pacing });
    this.#pairing = new Pairing(state, clock, ids);
    this.#inbox = new Inbox({
      ctx,
      platform: this.#platform,
      admission: new Admission(config, this.#pairing, clock),
      pairing: this.#pairing,
      state,
      sequence,
      budget,
      outbox,
      chats: this.#chats,
    });
    this.#connection = new Connection(clock, log, () => this.#sender.wake());
    this.#sequence = sequence;
    this.#budget = budget;
    this.#failed = failed;
    this.#outbox = outbox;
  }

  async start(): Promise<void> {
    const onSeq = (seq: string) => this.#sequence.seen(seq);
    await this.#failed.load();
    await this.#pairing.load();
    await this.#outbox.load(onSeq);
    await this.#chats.load(this.#budget, onSeq);
    this.#sender.start();
    this.#chats.start();
    const { stopRequested } = this.#ctx.host;
    stopRequested.addEventListener('abort', this.#close, { once: true });
    if (stopRequested.aborted) this.#close();
    this.#isOpen = true;
    this.#running = this.#connection.keep((signal) => this.#platform.run(this, signal), this.#stopping.signal);
  }

  /** @throws Error that says how many answers were cut. */
  async stop(signal: AbortSignal): Promise<void> {
    const running = this.#running;
    if (!running) return;
    this.#running = undefined;
    this.#ctx.host.stopRequested.removeEventListener('abort', this.#close);
    this.#close();
    const cut = await this.#chats.stop(signal);
    await this.#sender.stop(signal);
    await untilAborted(running, signal);
    if (cut === 0) return;
    const [answers, messages] = cut === 1 ? ['1 answer was', 'its message is'] : [`${cut} answers were`, 'their messages are'];
    throw new Error(`${answers} cut; ${messages} answered after the next start`);
  }

  status(): ChannelStatus {
    const { reason = this.#sender.failure, ...connection } = this.#connection.status;
    return {
      platform: this.#platform.name,
      ...connection,
      reason,
      waiting: this.#chats.size,
      unsent: this.#outbox.size,
      failed: this.#failed.count,
    };
  }

  /** `/readyz` follows it. */
  health(): ReturnType<NonNullable<Lifecycle['health']>> {
    const { state, reason } = this.#connection.status;
    return { state: state === 'connected' ? 'ok' : 'failed', reason };
  }

  readonly pairing = {
    requests: () => this.#pairing.requests(),
    paired: () => this.#pairing.paired(),
    approve: (code: string) => this.#inbox.approve(code),
    remove: (sender: string) => this.#pairing.remove(sender),
  };

  readonly outbox = {
    failed: () => this.#failed.list(),
    send: (id: string) => this.#outbox.retry(id),
    drop: (id: string) => this.#outbox.drop(id),
    sendWaiting: () => this.#sender.sendNow(),
  };

  receive(messages: readonly Incoming<To, Image>[], state: Values = {}): Promise<readonly Receipt[]> {
    if (!this.#isOpen || this.#stopping.signal.aborted)
      return Promise.reject(new TurnError('draining', 'The channel does not run.', { retryAfter: 1 }));
    return this.#inbox.receive(messages, state);
  }

  connected(account?: string): void {
    this.#connection.connected(account);
  }

  failed(reason: string): void {
    this.#connection.failed(reason);
  }

  /** Takes no further message, and begins none. */
  readonly #close = () => {
    this.#stopping.abort();
    this.#chats.close();
  };
}

/** Opens a channel over a platform, and shows it to operators. Called by `register`. */
export function openChannel<To, Kept, Image>(
  ctx: PluginContext<ChannelOptions>,
  platform: Platform<To, Kept, Image>,
): ChannelEntry<To, Kept, Image> {
  const channel = new ChannelEntry(ctx, platform);
  ctx.contribute(Channels, channel);
  return channel;
}
