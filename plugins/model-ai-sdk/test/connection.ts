import { type Message, ModelConnectors, type ModelError, type ModelEvent, type ModelRequest } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import { ManualClock, modelRequest, SequentialIds, testContext } from '@plugboard/testing';
import type { Test } from 'tap';
import plugin from '../src/index.js';
import { ANTHROPIC_KEY, ANTHROPIC_MODEL, anthropic } from './servers/anthropic.js';
import { BEDROCK_KEY, BEDROCK_MODEL, bedrock } from './servers/bedrock.js';
import { GOOGLE_KEY, GOOGLE_MODEL, google, VERTEX_KEY, vertex } from './servers/google.js';
import { MISTRAL_KEY, MISTRAL_MODEL, mistral } from './servers/mistral.js';
import { type Format, NativeServer } from './servers/native-server.js';
import {
  AZURE_KEY,
  azure,
  OPENAI_KEY,
  OPENAI_MODEL,
  openaiResponses,
  XAI_KEY,
  XAI_MODEL,
  xai,
} from './servers/openai-responses.js';

type Options = Readonly<Record<string, unknown>>;

/** A provider package, and its server. */
interface Provider {
  readonly format: Format;
  readonly options: Options;
}

export const PROVIDERS = {
  anthropic: {
    format: anthropic,
    options: {
      provider: '@ai-sdk/anthropic',
      model: ANTHROPIC_MODEL,
      apiKey: ANTHROPIC_KEY,
      providerOptions: { anthropic: { thinking: { type: 'adaptive' } } },
    },
  },
  google: { format: google, options: { provider: '@ai-sdk/google', model: GOOGLE_MODEL, apiKey: GOOGLE_KEY } },
  bedrock: {
    format: bedrock,
    options: {
      provider: '@ai-sdk/amazon-bedrock',
      model: BEDROCK_MODEL,
      apiKey: BEDROCK_KEY,
      settings: { region: 'us-east-1' },
      providerOptions: { bedrock: { reasoningConfig: { type: 'adaptive' } } },
    },
  },
  openai: { format: openaiResponses, options: { provider: '@ai-sdk/openai', model: OPENAI_MODEL, apiKey: OPENAI_KEY } },
  azure: { format: azure, options: { provider: '@ai-sdk/azure', model: OPENAI_MODEL, apiKey: AZURE_KEY } },
  vertex: { format: vertex, options: { provider: '@ai-sdk/google-vertex', model: GOOGLE_MODEL, apiKey: VERTEX_KEY } },
  mistral: { format: mistral, options: { provider: '@ai-sdk/mistral', model: MISTRAL_MODEL, apiKey: MISTRAL_KEY } },
  xai: { format: xai, options: { provider: '@ai-sdk/xai', model: XAI_MODEL, apiKey: XAI_KEY } },
} satisfies Record<string, Provider>;

export type ProviderName = keyof typeof PROVIDERS;

/** A connection of this plugin with a manual clock, started. */
export async function connect(t: Test, options: Options) {
  const clock = new ManualClock();
  const context = testContext(plugin, {
    config: options,
    entry: 'models.native',
    clock,
    ids: new SequentialIds(),
    folder: import.meta.dirname,
  });
  await context.lifecycle.start?.(new AbortController().signal);
  t.teardown(() => context.lifecycle.stop?.(new AbortController().signal));
  return { clock, connector: context.contributed(ModelConnectors, 'native'), context };
}

/** A scripted server of a provider and a connection to it. */
export async function open(t: Test, name: ProviderName, options: Options = {}) {
  const { format, options: own } = PROVIDERS[name] as Provider;
  const server = await NativeServer.start(format);
  t.teardown(() => server.close());
  return { server, ...(await connect(t, { ...own, baseUrl: server.url, ...options })) };
}

type Connector = Pick<Awaited<ReturnType<typeof connect>>, 'connector'>;

export const CLOCK: ToolDeclaration = {
  name: 'clock',
  description: 'Tells the time.',
  inputSchema: { type: 'object', properties: { zone: { type: 'string' } } },
};

export async function readAll(
  { connector }: Connector,
  request: Partial<ModelRequest> = {},
  signal = new AbortController().signal,
): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const batch of connector.stream(modelRequest('Hi', request), signal)) events.push(...batch);
  return events;
}

/** The error that ends an answer, and the text before it. */
export async function readError({ connector }: Connector, request: Partial<ModelRequest> = {}) {
  let text = '';
  try {
    for await (const batch of connector.stream(modelRequest('Hi', request), new AbortController().signal))
      for (const event of batch) if (event.type === 'text') text += event.text;
  } catch (error) {
    const { name, message, retryable, retryAfter, isRequestFault } = error as ModelError;
    return { name, message, retryable, retryAfter, isRequestFault, text };
  }
  throw new Error(`there was no error, but the text "${text}"`);
}

export function textOf(events: readonly ModelEvent[], type: 'text' | 'reasoning' = 'text'): string {
  return events.map((event) => (event.type === type ? event.text : '')).join('');
}

export function callsOf(events: readonly ModelEvent[]) {
  return events.flatMap((event) => (event.type === 'tool-call' ? [event] : []));
}

/** The messages of an answer and of the results of its calls, as the runtime stores them. */
export function asMessages(events: readonly ModelEvent[], results: readonly string[] = []): Message[] {
  const calls = callsOf(events);
  const end = events.find((event) => event.type === 'end');
  const extraOf = (data: unknown) => (data === undefined ? {} : { extra: { connection: 'native', data } });
  return [
    {
      role: 'assistant',
      content: textOf(events) || null,
      ...(calls.length === 0
        ? {}
        : {
            tool_calls: calls.map(({ name, arguments: args, extra }, index) => ({
              id: `call_${index}_${results.join('')}`,
              type: 'function' as const,
              function: { name, arguments: args },
              ...extraOf(extra),
            })),
          }),
      ...extraOf(end?.type === 'end' ? end.extra : undefined),
    },
    ...calls.map((_, index) => ({
      role: 'tool' as const,
      tool_call_id: `call_${index}_${results.join('')}`,
      content: results[index] ?? 'ok',
    })),
  ];
}
