import {
  AgentRuntimes,
  definePlugin,
  type HostView,
  type PluginContext,
  type PluginState,
  SessionStores,
  type StateStore,
} from '@plugboard/kernel';
import { LeaseEnded } from '@plugboard/kernel/contracts';
import { eventually, ManualClock, ScriptedRuntime, type SequentialIds, testContext } from '@plugboard/testing';
import { type ChannelEntry, channelOptions, groupsOption, openChannel } from '../src/index.js';
import { ScriptedPlatform, type To } from './scripted-platform.js';

export interface OpenOptions {
  readonly platform?: ScriptedPlatform;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly runtime?: ScriptedRuntime;
  readonly clock?: ManualClock;
  readonly ids?: SequentialIds;
  /** What an earlier life left. */
  readonly state?: StateStore;
  /** A server of several over the same `state`. */
  readonly server?: OneServer;
  readonly host?: HostView;
}

/** One of several servers: its lease, and how its store fails. */
export class OneServer {
  /** What comes of the next attempts to have the platform. */
  readonly failures: Error[] = [];
  #lost = new AbortController();
  #release: (() => Promise<void>) | undefined;

  /** It was silent for longer than its lease: others may go on, and then it wakes. */
  async lose(): Promise<void> {
    await this.#release?.();
    this.#lost.abort(new LeaseEnded('expired'));
    this.#lost = new AbortController();
  }

  contextOf<C>(ctx: PluginContext<C>): PluginContext<C> {
    const state = new Proxy(ctx.state, {
      get: (target, name: keyof PluginState) => (name === 'exclusive' ? this.#exclusive(target) : target[name].bind(target)),
    });
    return { ...ctx, state };
  }

  #exclusive(state: PluginState): PluginState['exclusive'] {
    return async (key, signal) => {
      const failure = this.failures.shift();
      if (failure) throw failure;
      const { release } = await state.exclusive(key, signal);
      this.#release = release;
      return { signal: this.#lost.signal, release };
    };
  }
}

/** A channel over a scripted platform and a scripted runtime. */
export function opened({ platform = new ScriptedPlatform(), config, clock = new ManualClock(), ...given }: OpenOptions = {}) {
  let channel: ChannelEntry<To, unknown, string> | undefined;
  const plugin = definePlugin({
    name: '@plugboard/transport-scripted',
    apiVersion: 1,
    summary: 'Answers the messages of a test',
    configSchema: {
      type: 'object',
      properties: { ...channelOptions, groups: groupsOption },
      required: ['agent'],
      additionalProperties: false,
    },
    register(ctx) {
      channel = openChannel(given.server?.contextOf(ctx) ?? ctx, platform);
      return channel;
    },
  });
  const ctx = testContext(plugin, {
    config: { agent: 'helper', ...config },
    clock,
    entry: 'transports.desk',
    ...(given.ids && { ids: given.ids }),
    ...(given.state && { state: given.state }),
    ...(given.host && { host: given.host }),
  });
  const runtime = given.runtime ?? new ScriptedRuntime({ agents: ['helper', 'other'], state: ctx.stateStore });
  ctx.provide(AgentRuntimes, runtime);
  if (given.server) ctx.provide(SessionStores, { shared: {} } as never);
  if (!channel) throw new Error('it was not registered');
  const { signal } = new AbortController();
  return {
    channel,
    platform,
    runtime,
    clock,
    state: ctx.stateStore,
    logs: ctx.logs,
    start: async () => ctx.lifecycle.start?.(signal),
    stop: async (at = signal) => ctx.lifecycle.stop?.(at),
    /** Waits until the platform has taken so many parts. */
    sent: (count: number) => eventually(() => platform.sent.length >= count),
  };
}

/** The keys that a channel has left in its state. */
export async function keysOf(state: StateStore): Promise<readonly string[]> {
  const left = await state.list('transports.desk', { prefix: '' });
  return left.map(({ key }) => key);
}
