import { AuthProviders } from './contracts/callers/auth-provider.js';
import { ModelConnectors } from './contracts/model/model-connector.js';
import { AgentRuntimes } from './contracts/runtime/agent-runtime.js';
import { SessionStores } from './contracts/store/session-store.js';
import { ToolSources } from './contracts/tools/tool-source.js';
import type { FileLayout } from './host/configuration/file-layout.js';
import { keptBy } from './host/plugin/state.js';

/** The sections of `plugboard.yaml`, and the package that a short name means in each. */
export const layout: FileLayout = {
  sections: {
    transports: {
      description: 'How callers reach the agents. The order does not matter.',
      prefix: 'transport',
      shape: 'map',
      required: true,
    },
    auth: {
      description:
        'How callers are identified: providers, asked in this order, or the word `open`. ' +
        'Without it, the server is open on this machine only.',
      prefix: 'auth',
      provides: { point: AuthProviders.id, name: 'an auth provider' },
      shape: 'map',
      strict: true,
      literals: ['open'],
      usual: { tokens: 'bearer', tokensFile: 'bearer', issuer: 'jwt', jwksUri: 'jwt' },
    },
    sessions: {
      description: 'The store of conversations: one entry. Without it, they are kept in memory.',
      prefix: 'store',
      provides: { point: SessionStores.id, name: 'a session store' },
      shape: 'single',
      fallback: { use: 'memory' },
      fixed: 'entry', // two stores at once would split the sessions
    },
    models: {
      description: 'Connections to models, by name. Agents refer to them; callers may use them as `model`.',
      prefix: 'model',
      provides: { point: ModelConnectors.id, name: 'a model connector' },
      shape: 'map',
      usual: { model: 'openai', baseUrl: 'openai', apiKey: 'openai' },
    },
    tools: {
      description: 'Tools for the agents, by name. An entry offers one tool or several.',
      prefix: 'tool',
      provides: { point: ToolSources.id, name: 'a tool source' },
      shape: 'map',
      usual: { command: 'mcp', args: 'mcp' },
      shared: {
        timeout: {
          type: 'string',
          format: 'duration',
          description: 'Time limit of one call. Default: `60s`; a call of an agent ends with its turn.',
        },
        resultLimit: {
          type: 'string',
          format: 'size',
          default: '64kb',
          description: 'Maximum size of a result sent to the model; longer results are truncated, with a note.',
        },
      },
    },
    plugins: {
      description: 'Plugins that belong to no other section, such as interceptors, metrics and tracing.',
      prefix: 'plugin',
      shape: 'map',
    },
    // Its options are the top-level keys `agents`, `projects`, `defaultAgent` and `limits`.
    runtime: {
      description:
        'The plugin that runs agents: one entry. Its options are the keys `agents`, `projects`, `defaultAgent` and `limits`.',
      prefix: '',
      provides: { point: AgentRuntimes.id, name: 'an agent runtime' },
      shape: 'single',
      fallback: { use: 'agent-runtime' },
      topLevelOptions: true,
      fixed: 'plugin', // two runtimes at once would run turns of one session side by side
    },
    responses: {
      description: 'The plugin that serves the Responses API to the transports `responses` and `websocket`: one entry.',
      prefix: '',
      provides: { point: 'open-responses.service', name: 'a service of the Responses API' },
      shape: 'single',
      fallback: { use: 'open-responses' },
      onDemand: true,
      fixed: 'plugin', // the responses in progress are in it
    },
  },
  state: keptBy(SessionStores, { storeOf: (store) => store.state, holdsOf: (store) => store.shared }),
  plainOptions: ['host', 'port', 'system', 'model', 'path', 'cwd', 'tokensFile'],
  secretFields: ['apiKey', 'api_key', 'password', 'token'],
  synonyms: {
    use: ['provider', 'type', 'kind', 'plugin'],
    model: ['llm', 'modelName', 'engine', 'deployment'],
    baseUrl: ['url', 'endpoint', 'apiBase'],
    apiKey: ['key', 'token', 'secret'],
    system: ['prompt', 'instructions', 'systemPrompt', 'systemMessage'],
    params: ['parameters', 'modelSettings'],
    maxSteps: ['maxIterations', 'maxTurns'],
    tools: ['functions', 'mcp', 'mcpServers'],
    args: ['arguments'],
    env: ['environment'],
    cwd: ['workingDirectory'],
    tokens: ['keys', 'apiKeys'],
    models: ['providers', 'llms'],
    sessions: ['storage', 'store', 'database'],
    auth: ['authentication'],
    transports: ['server', 'http'],
    log: ['logging'],
  },
};
