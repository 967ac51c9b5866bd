import type { Test } from 'tap';
import { TestServer, TRANSPORTS } from '../support/test-server.js';

/** Tools whose runs are logged: one that writes, one that reads. */
const SHELL = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  export default definePlugin({
    name: 'shell', apiVersion: 1, summary: 'Runs commands', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const inputSchema = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] };
      const tool = (name, effect) => ({
        name, effect, description: name, inputSchema,
        run: ({ command }, call) => {
          ctx.log.info({ tool: name, command, key: call.turnId + '/' + call.index }, 'ran');
          return 'output of ' + command;
        },
      });
      const tools = [tool('run', 'write'), tool('look', 'read')];
      ctx.contribute(ToolSources, { tools: () => tools });
    },
  });
`;

/** Adds to the transports of every server of these tests. */
export function transports(more: string): string {
  return `${TRANSPORTS}${more}`;
}

const TOKENS = {
  anna: ['chat', 'sessions:read', 'sessions:write'],
  ben: ['chat'],
  boss: ['approve'],
  other: ['approve', 'chat'],
  reader: ['sessions:read'],
};

/**
 * The headers of the callers: `boss` may approve, `other` belongs to another project, and `reader`
 * may neither ask nor decide.
 */
export const CALLERS = Object.fromEntries(
  Object.keys(TOKENS).map((name) => [name, { authorization: `Bearer token-of-${name}-0123456789` }]),
) as Readonly<Record<keyof typeof TOKENS, { readonly authorization: string }>>;

/** A server with an agent `ops` whose tools that write need approval. */
export async function startApprovals(
  t: Test,
  options: {
    readonly transports?: string;
    readonly agent?: string;
    /** More of the file. */
    readonly more?: string;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<TestServer> {
  const tokens = Object.entries(TOKENS).map(([name, scopes]) => {
    const project = name === 'other' ? 'acme' : 'default';
    return `{ name: ${name}, project: ${project}, token: token-of-${name}-0123456789, scopes: [${scopes.join(', ')}] }`;
  });
  const yaml = `${transports(options.transports ?? '')}
auth: { bearer: { tokens: [${tokens.join(', ')}] } }
projects: { acme: {} }
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" } }
tools: { shell: { use: ./shell.mjs } }
agents: { ops: { model: fast, tools: [shell], approve: write${options.agent ?? ''} } }
${options.more ?? ''}`;
  return TestServer.start(t, yaml, { files: { 'shell.mjs': SHELL }, ...(options.env && { env: options.env }) });
}

/** The commands that ran. */
export function ran(server: TestServer): readonly unknown[] {
  return server.started.logs.filter(({ msg }) => msg === 'ran').map(({ command }) => command);
}

/** Scripts a step that calls a tool with commands, and then an answer. */
export function script(server: TestServer, commands: readonly string[], answer = 'Done.', tool = 'run'): void {
  server.models.enqueue(
    { toolCalls: commands.map((command) => ({ name: `shell__${tool}`, arguments: { command } })) },
    { text: answer },
  );
}

/** The code of the only request for approval in a text. */
export function codeIn(text: string): string {
  return /approve ([A-Z2-9]{6})/.exec(text)?.[1] ?? '';
}
