import {
  AgentRuntimes,
  type Extensions,
  type Lifecycle,
  type PluginContext,
  parseSize,
  type SessionStore,
  SessionStores,
} from '@plugboard/kernel';
import {
  type AgentRuntime,
  type Budget,
  type Channel,
  type ChannelStatus,
  Channels,
  type Exclusive,
  TurnError,
} from '@plugboard/kernel/contracts';
import { ActiveChannel } from './active-channel.js';
import { backoff } from './base/backoff.js';
import { untilAborted, wait } from './base/wait.js';
import { ChannelAgents } from './chats/agents.js';
import { Connection } from './connection.js';
import { Operators } from './operators.js';
import type { ChannelOptions } from './platform/options.js';
import type { ChannelInbox, Incoming, Platform, Receipt } from './platform/platform.js';
import { Admission } from './receiving/admission.js';
import { Pairing } from './receiving/pairing.js';
import { Relay, type Relayed } from './receiving/relay.js';
import { ChannelState, type Values } from './state/channel-state.js';
import { KEYS } from './state/keys.js';

/** Milliseconds until a server tries again to get the platform after its store has failed. */
const BACKOFF = { first: 1_000, most: 30_000 };

/**
 * A channel over a platform: the value that a plugin's `register` returns, and that its routes hand
 * messages to.
 *
 * 1. Created by `register`, it declares what it reads, and opens nothing.
 * 2. `start` reads what earlier lives left, and goes on with it. It does not wait for the platform.
 * 3. Of several servers over one store, one does so (`ActiveChannel`), as long as it has its lease.
 *    The others are on standby: they give it what they receive (`Relay`), and wait.
 * 4. When the server is asked to stop, no further message is taken or begins.
 * 5. `stop` lets turns that run end, until its signal aborts. What is left waits for the next
 *    start, or is the next server's.
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
  readonly #agents: ChannelAgents;
  readonly #state: ChannelState;
  readonly #budget: Budget;
  readonly #connection: Connection;
  readonly #relay: Relay;
  readonly #stores: Extensions<SessionStore>;
  readonly #stopping = new AbortController();
  #isOpen = false;
  /** Set while this server has the platform. */
  #active: ActiveChannel | undefined;
  /** Aborts when what runs has to end now. */
  readonly #cutting = new AbortController();
  /** How many answers were cut by the stop. */
  #cut = 0;
  /** Where there may be other servers: resolves when this one has given the platform away. */
  #holding: Promise<void> | undefined;
  #running: Promise<unknown> | undefined;
  readonly pairing: Operators['pairing'];
  readonly outbox: Operators['outbox'];

  constructor(ctx: PluginContext<ChannelOptions>, platform: Platform<To, Kept, Image>) {
    const { clock, ids, log, config, name, entry } = ctx;
    const runtimes = ctx.extensions<AgentRuntime>(AgentRuntimes);
    this.#stores = ctx.extensions<SessionStore>(SessionStores);
    this.#ctx = ctx;
    this.#platform = platform as unknown as Platform;
    this.#state = new ChannelState(ctx.state);
    this.#budget = ctx.budgets.create({
      name: `messages and replies that wait in ${entry}`,
      unit: 'bytes',
      limit: parseSize(config.waiting),
      setting: `${entry}.waiting`,
    });
    this.#agents = new ChannelAgents(runtimes, config, { entry: name, platform: platform.name });
    const state = this.#state;
    const admission = new Admission(config, new Pairing(state, clock, ids), clock);
    this.#relay = new Relay({ entry, clock, ids, log, state, admission, waiting: config.waiting });
    this.#connection = new Connection(clock, log, () => this.#active?.sender.wake());
    const operators = new Operators({ active: () => this.#active, relay: this.#relay, state, clock, ids });
    this.pairing = operators.pairing;
    this.outbox = operators.outbox;
  }

  async start(): Promise<void> {
    const { stopRequested } = this.#ctx.host;
    const { signal } = this.#stopping;
    const isShared = this.#stores.all().some(({ value }) => value.shared !== undefined);
    const alone = isShared ? undefined : this.#newActive();
    await alone?.load();
    if (alone) this.#activate(alone);
    stopRequested.addEventListener('abort', this.#close, { once: true });
    if (stopRequested.aborted) this.#close();
    this.#isOpen = true;
    if (!alone) this.#holding = this.#holdPlatform(signal);
    this.#running = Promise.all([this.#holding, (alone || this.#platform.receivesAnywhere) && this.#receive(signal)]);
  }

  /** @throws Error that says how many answers were cut. */
  async stop(signal: AbortSignal): Promise<void> {
    const running = this.#running;
    if (!running) return;
    this.#running = undefined;
    this.#ctx.host.stopRequested.removeEventListener('abort', this.#close);
    this.#close();
    const end = () => this.#cutting.abort();
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    if (this.#holding) await this.#holding;
    else await this.#stopActive();
    await untilAborted(running, signal);
    const cut = this.#cut;
    if (cut === 0) return;
    const [answers, messages] = cut === 1 ? ['1 answer was', 'its message is'] : [`${cut} answers were`, 'their messages are'];
    throw new Error(`${answers} cut; ${messages} answered after the next start`);
  }

  status(): ChannelStatus {
    const active = this.#active;
    const { reason = active?.sender.failure, ...connection } = this.#connection.status;
    return {
      platform: this.#platform.name,
      ...connection,
      reason,
      waiting: active?.chats.size ?? 0,
      unsent: active?.outbox.size ?? 0,
      failed: active?.failed.count ?? 0,
    };
  }

  /** `/readyz` follows it. */
  health(): ReturnType<NonNullable<Lifecycle['health']>> {
    const { state, reason } = this.#connection.status;
    return { state: state === 'connected' || state === 'standby' ? 'ok' : 'failed', reason };
  }

  receive(messages: readonly Incoming<To, Image>[], state: Values = {}): Promise<readonly Receipt[]> {
    if (!this.#isOpen || this.#stopping.signal.aborted)
      return Promise.reject(new TurnError('draining', 'The channel does not run.', { retryAfter: 1 }));
    return (this.#active?.inbox ?? this.#relay).receive(messages, state);
  }

  connected(account?: string): void {
    this.#connection.connected(account);
  }

  failed(reason: string): void {
    this.#connection.failed(reason);
  }

  /** Has the platform whenever no other server has it, until the signal aborts. Never rejects. */
  async #holdPlatform(signal: AbortSignal): Promise<void> {
    const { clock, log, state } = this.#ctx;
    for (let failures = 0; !signal.aborted; ) {
      this.#connection.isStandby = true;
      try {
        await this.#runAsHolder(await state.exclusive(KEYS.platform, signal), signal);
        failures = 0;
      } catch (err) {
        if (signal.aborted) return;
        if (failures++ === 0) log.warn({ err }, 'the channel is on standby, because the store failed; it is tried again');
        await wait(clock, backoff(BACKOFF, failures), signal);
      }
    }
  }

  /** Works as the one server that has the platform. @throws Error if the store fails at first */
  async #runAsHolder(held: Exclusive, stopping: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([held.signal, stopping]);
    const active = this.#newActive();
    try {
      await active.load();
      signal.throwIfAborted();
    } catch (error) {
      await active.lose();
      await held.release();
      throw error;
    }
    this.#activate(active);
    this.#connection.isStandby = false;
    held.signal.addEventListener('abort', () => this.#lose(active), { once: true });
    const take = (relayed: Relayed, removal: Values) => this.#take(active, relayed, removal);
    const work = Promise.all([this.#relay.collect(take, signal), this.#platform.receivesAnywhere || this.#receive(signal)]);
    await untilAborted(work, signal);
    // The next server need not wait for what else this one has to end.
    if (this.#active) await this.#stopActive();
    this.#active = undefined;
    await active.lose();
    await untilAborted(work, this.#cutting.signal);
    await held.release();
  }

  /** Another server may have the platform. */
  #lose(active: ActiveChannel): void {
    this.#ctx.log.warn('this server has lost its lease: another one may have the platform');
    this.#active = undefined;
    void active.lose();
  }

  async #stopActive(): Promise<void> {
    this.#cut = (await this.#active?.stop(this.#cutting.signal)) ?? 0;
  }

  #newActive(): ActiveChannel {
    const platform = this.#platform;
    return new ActiveChannel({ ctx: this.#ctx, platform, agents: this.#agents, state: this.#state, budget: this.#budget });
  }

  #activate(active: ActiveChannel): void {
    this.#active = active;
    active.start();
  }

  #receive(signal: AbortSignal): Promise<void> {
    return this.#connection.keep((aborts) => this.#platform.run(this, aborts), signal);
  }

  /** Takes what another server was given. @param removal removes it from the relay. */
  async #take(active: ActiveChannel, relayed: Relayed, removal: Values): Promise<void> {
    if ('messages' in relayed) return void (await active.inbox.receive(relayed.messages, removal, true));
    if ('approve' in relayed) await active.inbox.approve(relayed.approve);
    else if ('retry' in relayed) await active.outbox.retry(relayed.retry);
    else await active.outbox.drop(relayed.drop);
    await this.#state.store(removal);
  }

  /** Takes no further message, and begins none. */
  readonly #close = () => {
    this.#stopping.abort();
    this.#active?.close();
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
