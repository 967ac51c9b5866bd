import { PROVIDERS as NATIVE } from '../../plugins/model-ai-sdk/test/connection.js';
import { listOf, NativeServer, type Scripted } from '../../plugins/model-ai-sdk/test/servers/native-server.js';
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
    ], names: 'plain' }),
  });`;

/** A provider in this test: how it is configured, and why it refused requests. */
export interface Provider {
  readonly name: string;
  readonly entry: string;
  readonly refusals: readonly string[];
  /** Answers the next request with an error status. */
  fail(status: number): void;
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
      fail: (status) => server.models.enqueue({ status }),
    });
  }
  for (const [name, { format, options }] of Object.entries({ ...NATIVE, 'anthropic-budget': BUDGET })) {
    const server = await NativeServer.start(format);
    servers.push(server);
    const random = seeded(providers.length);
    server.respond(({ body }) => {
      onRequest();
      return nativeAnswer(random, JSON.stringify(listOf(body.messages ?? body.contents ?? body.input).at(-1)));
    });
    const key = `P${providers.length}`;
    env[key] = server.url;
    const entry = JSON.stringify({ use: 'ai-sdk', ...options, baseUrl: `\${${key}}` });
    const fail = (status: number) =>
      server.enqueue({ status, body: { error: { message: 'no', type: 'x', code: status, status: 'X' } } });
    providers.push({ name: `native-${name}`, entry, refusals: server.refusals, fail });
  }
  const close = () => Promise.all(servers.map((server) => server.close()));
  return { providers, env, close };
}

/** Calls tools when it is asked to, with arguments of all kinds. */
function nativeAnswer(random: () => number, last: string): Scripted {
  if (/tool_result|functionResponse|toolResult|function_call_output|"role":"tool"/.test(last))
    return { thinking: ['Hm.'], text: ['Found.'] };
  if (!last.includes('tools')) return random() < 0.2 ? { thinking: ['Hm.'] } : { thinking: ['Hm.'], text: ['Answer ', 'one.'] };
  const inputs = [{}, { word: 'oak' }, { word: 7, terms: [null, 'x'] }, { other: { deep: ['\u0000'] } }];
  const input = (): object => inputs[Math.floor(random() * inputs.length)] ?? {};
  const calls = ['lookup', 'sum', 'none']
    .slice(0, 1 + Math.floor(random() * 3))
    .map((name, index) => ({ id: `call_${index}`, name, input: input() }));
  return { thinking: ['One.', 'Two.'], ...(random() < 0.5 ? { text: ['Let me see.'] } : {}), calls };
}

/** The configuration, in which one provider answers, and others stand behind it. */
export function configOf(
  providers: readonly Provider[],
  order: readonly number[],
  prompt: string,
  history: string,
  sessions = './sessions.db',
): string {
  return `
transports: { http: { port: 0 }, chat-completions: {}, sse: {} }
sessions: { use: sqlite, path: ${sessions} }
models:
${providers.map(({ entry }, index) => `  m${index}: ${entry}`).join('\n')}
tools: { kit: { use: ./tools.mjs } }
agents:
  mixed: { model: [${order.map((index) => `m${index}`).join(', ')}], system: ${prompt}, tools: [kit], history: ${history} }
`;
}

const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
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
