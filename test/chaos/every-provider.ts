import { PROVIDERS as NATIVE } from '../../plugins/model-ai-sdk/test/connection.js';
import {
  type Body,
  listOf,
  type NativeAnswer,
  NativeServer,
  type Scripted,
} from '../../plugins/model-ai-sdk/test/servers/native-server.js';
import { ProviderServer } from '../../plugins/model-openai/test/providers/provider-server.js';
import { PROVIDERS as PRESETS } from '../../plugins/model-openai/test/providers/providers.js';
import { seeded } from '../support/seeded.js';

/**
 * Two tools: the result of one is empty, the other one fails. Their schema has what some providers
 * refuse.
 */
export const TOOLS = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  const inputSchema = {
    type: 'object',
    anyOf: [{ required: ['word'] }, { required: ['terms'] }, {}],
    $defs: { word: { type: 'string' } },
    properties: { word: { $ref: '#/$defs/word' }, depth: {}, terms: { type: 'array', items: {} }, hours: { type: 'integer', enum: [12, 24] } },
  };
  const tool = (name, run) => ({ name, description: 'A tool.', effect: 'read', inputSchema, run });
  export default definePlugin({
    name: 'tools', apiVersion: 1, summary: 'Tools', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { tools: () => [
      tool('lookup', () => ''), tool('sum', () => { throw new Error('it failed \\ud83d'); }),
      { ...tool('erase', () => 'Erased.'), effect: 'write' },
    ], names: 'plain' }),
  });`;

/** A provider in this test: how it is configured, and why it refused requests. */
export interface Provider {
  readonly name: string;
  readonly entry: string;
  readonly refusals: readonly string[];
  /** Answers a request with an error status. @param after requests that it answers before. */
  failAfter(after: number, status: number): void;
  /** Answers all requests again. */
  recover(): void;
}

/** Claude that must think before it calls a tool, beside that which thinks as it likes. */
const BUDGET = {
  ...NATIVE.anthropic,
  options: {
    ...NATIVE.anthropic.options,
    model: 'claude-sonnet-4-5',
    providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
  },
};

/** A scripted server for each preset of model-openai and each format of model-ai-sdk. */
export async function startProviders(onRequest: () => void = () => {}) {
  const providers: Provider[] = [];
  const env: Record<string, string> = {};
  const servers: { close(): Promise<void> }[] = [];
  for (const [name, provider] of Object.entries(PRESETS)) {
    const server = await ProviderServer.start(provider);
    servers.push(server.models);
    const key = `P${providers.length}`;
    env[key] = server.models.url;
    providers.push({
      name,
      entry: `{ use: openai, baseUrl: "\${${key}}", apiKey: sk-key-of-the-test, ${provider.options} }`,
      refusals: server.refusals,
      failAfter: (after, status) => server.failAfter(after, status),
      recover: () => server.recover(),
    });
  }
  for (const [name, { format, options }] of Object.entries({ ...NATIVE, 'anthropic-budget': BUDGET })) {
    const server = await NativeServer.start(format);
    servers.push(server);
    const random = seeded(providers.length);
    let failure: { status: number; after: number } | undefined;
    server.respond(({ body }) => {
      onRequest();
      if (failure && failure.after-- === 0)
        return { status: failure.status, body: { error: { message: 'no', type: 'x', code: failure.status, status: 'X' } } };
      return nativeAnswer(random, name, body);
    });
    const key = `P${providers.length}`;
    env[key] = server.url;
    const entry = JSON.stringify({ use: 'ai-sdk', ...options, baseUrl: `\${${key}}` });
    const failAfter = (after: number, status: number) => {
      failure = { status, after };
    };
    const recover = () => {
      failure = undefined;
    };
    providers.push({ name: `native-${name}`, entry, refusals: server.refusals, failAfter, recover });
  }
  const close = () => Promise.all(servers.map((server) => server.close()));
  return { providers, env, close };
}

/** How each format says that the answer was cut off, or refused. */
const CUTS: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['max_tokens', 'refusal'],
  'anthropic-budget': ['max_tokens', 'refusal'],
  bedrock: ['max_tokens', 'guardrail_intervened'],
  google: ['MAX_TOKENS', 'SAFETY'],
  vertex: ['MAX_TOKENS', 'SAFETY'],
  mistral: ['length'],
};

/** Calls tools when it is asked to, with arguments of all kinds. */
function nativeAnswer(random: () => number, provider: string, body: Body): Scripted {
  const last = JSON.stringify(listOf(body.messages ?? body.contents ?? body.input).at(-1));
  const cuts = CUTS[provider] ?? ['max_output_tokens', 'content_filter'];
  const isCut = random() < 0.1;
  const answer = wholeAnswer(random, last, JSON.stringify(body.tools ?? body.toolConfig ?? []));
  return isCut ? { ...answer, finish: cuts[Math.floor(random() * cuts.length)] ?? null } : answer;
}

/** @param declared the tools, as JSON. */
function wholeAnswer(random: () => number, last: string, declared: string): NativeAnswer {
  if (/tool_result|functionResponse|toolResult|function_call_output|"role":"tool"/.test(last) && random() < 0.7)
    return { thinking: ['Hm.'], text: ['Found.'] };
  if (!/tools|result|output|functionResponse/i.test(last))
    return random() < 0.2 ? { thinking: ['Hm.'] } : { thinking: ['Hm.'], text: ['Answer ', 'one.'] };
  const inputs = [{}, { word: 'oak' }, { word: 7, terms: [null, 'x'] }, { other: { deep: ['\u0000'] } }];
  const input = (): object => inputs[Math.floor(random() * inputs.length)] ?? {};
  const names = ['kit__lookup', 'kit__sum', 'kit__erase', 'ask_user', 'none'].filter((name) => declared.includes(`"${name}"`));
  const calls = [...names, 'none']
    .filter((name) => random() < (name === 'ask_user' ? 0.6 : 0.4))
    .map((name, index) => ({ id: `call_${index}`, name, input: input() }));
  if (calls.length === 0) return { text: [' '] };
  return { thinking: ['One.', 'Two.'], ...(random() < 0.5 ? { text: ['Let me see.'] } : {}), calls };
}

/** The configuration, in which one provider answers, and others stand behind it. */
export function configOf(
  providers: readonly Provider[],
  order: readonly number[],
  prompt: string,
  history: string,
  sessions = './sessions.db',
  more = '',
): string {
  return `
transports: { http: { port: 0 }, chat-completions: {}, sse: {}, conversations: {} }
sessions: { use: sqlite, path: ${sessions} }
models:
${providers.map(({ entry }, index) => `  m${index}: ${entry}`).join('\n')}
tools: { kit: { use: ./tools.mjs } }
agents:
  mixed: { model: [${order.map((index) => `m${index}`).join(', ')}], system: ${prompt}, tools: [kit], clientTools: passthrough, history: ${history}${more} }
`;
}

const image = (url: string) => ({ type: 'image_url', image_url: { url } });
const IMAGE = image('data:image/png;base64,iVBORw0KGgo=');
/** Images that some providers refuse, sooner or later. */
export const ODD_IMAGES = [
  image('data:image/gif;base64,R0lGODlhAQABAAAAACw='),
  image('data:image/png;base64,iVBORw0KGgoAYnJva2Vu'),
  image('https://gone.example/a.png'),
];
/** What users say. */
export const CONTENTS: readonly unknown[] = [
  'Hello',
  'Use the tools',
  'Use the tools again',
  ' ',
  'half \ud83d',
  [{ type: 'text', text: 'See' }, IMAGE],
  'Now there is trouble',
  'Now there is disaster',
];
export const CLIENT_TOOL = { type: 'function', function: { name: 'ask_user', parameters: { type: 'object', properties: {} } } };
/** The history settings of agents. */
export const HISTORIES = ['truncate', '{ maxMessages: 6 }', '{ policy: summarize, maxMessages: 8 }'];
