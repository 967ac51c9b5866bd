import type { Test } from 'tap';
import { TestServer, TRANSPORTS } from '../../../../../test/support/test-server.js';

/** What the playground uses. */
const SURFACES = '  websocket: {}\n  conversations: {}\n  playground: { suggestions: [What can you do?] }\n';

const agents = (model: string) => `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}"${model === '' ? '' : `, ${model}`} }
tools:
  desk: { use: ./desk.mjs }
agents:
  assistant: { model: fast, system: You are the assistant., tools: [desk] }
  bare: { model: fast }
`;

/** Where the plugin finds the function of the test: both run in one process. */
const LOOKUP = Symbol.for('playground-tests.lookup');

/** A plugin with one tool, whose result the test decides. */
const DESK = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  const tool = {
    name: 'lookup',
    description: 'Looks up a topic.',
    inputSchema: { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'], additionalProperties: false },
    effect: 'read',
    run: ({ topic }) => globalThis[Symbol.for('playground-tests.lookup')](topic),
  };
  export default definePlugin({
    name: 'desk', apiVersion: 1, summary: 'Looks things up', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { tools: () => [tool] }),
  });
`;

/** The token that servers of the tests accept. */
export const TOKEN = 'a-token-for-the-playground-tests';

/** For `yaml`: the server requires a token, whose project has no agents of its own. */
export const BEARER = `auth:
  bearer:
    tokens:
      - { name: page, project: acme, token: ${TOKEN} }
projects:
  acme: {}
`;

interface PlaygroundServerOptions {
  /** Lines below `transports`. */
  readonly surfaces?: string;
  /** More settings of the model connection. */
  readonly model?: string;
  /** More agents, and more sections behind them. */
  readonly yaml?: string;
  /** More tools. */
  readonly tools?: string;
  /** More files beside the configuration. */
  readonly files?: Readonly<Record<string, string>>;
  /** The result of the tool. It may throw. */
  readonly lookup?: (topic: string) => string | Promise<string>;
}

/** A server with the playground and two agents, one of which has a tool. */
export function startPlayground(t: Test, options: PlaygroundServerOptions = {}): Promise<TestServer> {
  const {
    surfaces = SURFACES,
    model = '',
    yaml = '',
    tools = '',
    files = {},
    lookup = (topic) => `All about ${topic}`,
  } = options;
  Object.assign(globalThis, { [LOOKUP]: lookup });
  return TestServer.start(t, TRANSPORTS + surfaces + agents(model).replace('agents:', `${tools}agents:`) + yaml, {
    files: { 'desk.mjs': DESK, ...files },
  });
}

/** A call of the tool, as the model makes it. */
export function lookUp(topic: string) {
  return { name: 'desk__lookup', arguments: { topic } };
}
