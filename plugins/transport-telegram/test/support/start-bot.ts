import { definePlugin, type Tool, ToolSources } from '@plugboard/kernel';
import { Channels } from '@plugboard/kernel/contracts';
import { eventually, ModelServer, startServer } from '@plugboard/testing';
import type { Test } from 'tap';
import plugin from '../../src/index.js';
import { TelegramServer, TOKEN } from './telegram-server.js';
import { ANN } from './updates.js';
import { WatchedClock } from './watched-clock.js';

/** A tool whose calls a person approves. */
export const ran: string[] = [];
const shell = definePlugin({
  name: 'shell',
  apiVersion: 1,
  summary: 'Runs commands',
  configSchema: { type: 'object', properties: {} },
  register(ctx) {
    const tool: Tool = {
      name: 'run',
      description: 'Runs a command',
      inputSchema: { type: 'object', properties: { command: { type: 'string' } } },
      run: ({ command }) => {
        ran.push(String(command));
        return 'done';
      },
    };
    ctx.contribute(ToolSources, { tools: () => [tool] });
  },
});

interface BotOptions {
  /** Options of the entry. */
  readonly telegram?: Readonly<Record<string, unknown>>;
  /** Further transports. */
  readonly transports?: Readonly<Record<string, unknown>>;
}

/** A whole server with a bot that Ann may write to, over a scripted Telegram and model. */
export async function startBot(t: Test, { telegram = {}, transports = {} }: BotOptions = {}) {
  const api = await TelegramServer.start();
  t.teardown(() => api.close());
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const clock = new WatchedClock();
  const started = await startServer(
    {
      transports: {
        telegram: { use: plugin, token: TOKEN, apiRoot: api.url, agent: 'helper', allow: [String(ANN.id)], ...telegram },
        ...transports,
      },
      models: { fast: { use: 'openai', baseUrl: model.url, model: 'scripted', input: ['text', 'image'] } },
      tools: { shell: { use: shell } },
      agents: {
        helper: { model: 'fast', tools: ['shell'], approve: 'write' },
        other: { model: 'fast', system: 'You are another one.' },
      },
    },
    { clock },
  );
  const { server, logs } = started;
  let isStopped = false;
  const stopOnce = async () => {
    if (isStopped) return;
    isStopped = true;
    await started.stop();
  };
  t.teardown(stopOnce);
  return {
    api,
    model,
    clock,
    server,
    logs,
    started,
    stop: stopOnce,
    channel: () => {
      const [channel] = server.extensions(Channels).all();
      if (!channel) throw new Error('there is no channel');
      return channel.value;
    },
    /** Waits for the next messages of the bot, and returns all their texts. */
    texts: async (count: number) => {
      await eventually(() => api.messages.length >= count);
      return api.messages.map(({ text }) => text);
    },
  };
}
