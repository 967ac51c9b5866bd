import { AgentRuntimes, definePlugin, type StateStore } from '@plugboard/kernel';
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
      channel = openChannel(ctx, platform);
      return channel;
    },
  });
  const ctx = testContext(plugin, {
    config: { agent: 'helper', ...config },
    clock,
    entry: 'transports.desk',
    ...(given.ids && { ids: given.ids }),
    ...(given.state && { state: given.state }),
  });
  const runtime = given.runtime ?? new ScriptedRuntime({ agents: ['helper', 'other'], state: ctx.stateStore });
  ctx.provide(AgentRuntimes, runtime);
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
