import type { Clock } from '@plugboard/kernel';
import { ModelServer, startServer } from '@plugboard/testing';
import type { Test } from 'tap';
import plugin from '../src/index.js';
import { Collector } from './collector.js';

type Options = Readonly<Record<string, unknown>>;

interface TracedServerOptions {
  /** Options of the entry, besides `endpoint`. */
  readonly tracing?: Options;
  readonly endpoint?: string;
  /** Sections of the file, besides those of a server with one model and one agent. */
  readonly config?: Options;
  readonly agent?: Options;
  readonly clock?: Clock;
  /** Other connections than `fast`, by the address of the scripted model server. */
  readonly models?: (url: string) => Readonly<Record<string, Options>>;
}

/** A whole server with this plugin, a scripted model and a receiver. */
export async function tracedServer(
  t: Test,
  { tracing = {}, endpoint, config = {}, agent = {}, models, clock }: TracedServerOptions = {},
) {
  const collector = await Collector.start(t);
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const file = (more: Options) => ({
    transports: { http: { port: 0 }, 'chat-completions': {}, sse: {} },
    models: models?.(model.url) ?? { fast: { use: 'openai', baseUrl: model.url, model: 'scripted' } },
    agents: { helper: { model: 'fast', ...agent } },
    plugins: { tracing: { use: plugin, endpoint: endpoint ?? collector.endpoint, ...tracing, ...more } },
    ...config,
  });
  const server = await startServer(file({}), { ...(clock && { clock }) });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= server.stop();
    return stopping;
  };
  t.teardown(() => stop().catch(() => {})); // a test that stops it sees its error
  return {
    collector,
    model,
    server,
    /** Changes options of the entry while the server runs. */
    reload: (options: Options) => server.server.reload(file(options)),
    /** Stops the server, which sends every span. */
    stop,
    /** Asks the agent. */
    ask: (body: Options = {}, headers: Readonly<Record<string, string>> = {}, signal?: AbortSignal) =>
      fetch(`${server.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model: 'helper', messages: [{ role: 'user', content: 'Hi' }], ...body }),
        ...(signal && { signal }),
      }),
  };
}

export type TracedServer = Awaited<ReturnType<typeof tracedServer>>;
