import type { Incoming, Outgoing, Receipt } from '@plugboard/channel-kit';
import { definePlugin } from '@plugboard/kernel';
import { testContext } from '@plugboard/testing';
import type { Test } from 'tap';
import type { Address } from '../../src/chats/address.js';
import type { TelegramOptions } from '../../src/config.js';
import { TelegramPlatform } from '../../src/telegram-platform.js';
import { TelegramServer, TOKEN } from './telegram-server.js';
import { WatchedClock } from './watched-clock.js';

const plugin = definePlugin({
  name: 'telegram-context',
  apiVersion: 1,
  summary: 'Gives a test the context of an entry',
  configSchema: { type: 'object', properties: {} },
  register(ctx) {
    const { state } = ctx; // from now on it can be used
    return { start: () => void state };
  },
});

/** The platform over a scripted server, with an inbox that keeps what it is handed. */
export async function openPlatform(t: Test, options: Partial<TelegramOptions> = {}) {
  const server = await TelegramServer.start();
  t.teardown(() => server.close());
  const clock = new WatchedClock();
  const ctx = testContext(plugin, { clock, entry: 'transports.telegram' });
  const config = {
    token: TOKEN,
    apiRoot: server.url,
    agent: 'helper',
    pairing: true,
    groups: 'mention',
    mode: 'polling',
    waiting: '1mb',
    ...options,
  } as TelegramOptions;
  const messages: Incoming[] = [];
  const events: string[] = [];
  /** Errors that the next calls of `receive` end with. */
  const faults: Error[] = [];
  let receipt: Receipt = 'taken';
  const known = new Set<string>();
  const inbox = {
    async receive(all: readonly Incoming[], state: Readonly<Record<string, unknown>> = {}): Promise<readonly Receipt[]> {
      const fault = faults.shift();
      if (fault) throw fault;
      await ctx.state.apply(ctx.state.changes(state));
      return all.map((message) => {
        if (message.ids.some((id) => known.has(id))) return 'known';
        for (const id of message.ids) known.add(id);
        messages.push(message);
        return receipt;
      });
    },
    connected: (account?: string) => void (events.at(-1) !== `connected ${account}` && events.push(`connected ${account}`)),
    failed: (reason: string) => void (events.at(-1) !== reason && events.push(reason)),
  };
  /** Runs it as the kit does. */
  const run = () => {
    const stop = new AbortController();
    const platform = new TelegramPlatform({ ...ctx, config, log: ctx.log });
    const running = platform.run(inbox as never, stop.signal);
    running.catch(() => {});
    return {
      platform,
      running,
      stop: async () => {
        stop.abort();
        await running;
      },
    };
  };
  return {
    server,
    clock,
    ctx,
    messages,
    events,
    faults,
    run,
    refuse: () => {
      receipt = 'refused';
    },
  };
}

/** A part of a reply. */
export function partOf(text: string, to: Address, more: Partial<Outgoing<Address, never>> = {}): Outgoing<Address, never> {
  return {
    id: 'msg_1',
    index: 0,
    count: 1,
    chat: String(to.chat),
    to,
    text,
    kind: 'reply',
    at: 0,
    mayHaveArrived: false,
    ...more,
  };
}
