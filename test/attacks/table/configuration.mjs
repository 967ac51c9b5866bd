import { HOSTILE_MCP, hostileEntries } from '../support/hostile-upstream.ts';
import { ATTACKER, INNOCENT } from './values.mjs';

const { models, agents } = hostileEntries('acme');

const YAML = `
transports:
  { http: { port: 0 }, chat-completions: {}, responses: {}, messages: {}, approvals: {}, websocket: {},
    conversations: {}, models: {}, health: {}, sse: {} }
sessions: { use: sqlite, path: ./sessions.db }
auth: { bearer: { tokens: [
  { name: attacker, project: acme, token: ${ATTACKER} }, { name: neighbour, project: beta, token: ${INNOCENT} } ] } }
projects: { acme: {}, beta: {} }
plugins: { watch: { use: ./watch.mjs } }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: fast, apiKey: x, contextWindow: 100000000, input: [text, image] }
  good: { use: openai, baseUrl: "\${MODEL_URL}", model: good, apiKey: x }
  gemini: { use: openai, provider: gemini, baseUrl: "\${MODEL_URL}", model: gemini, apiKey: x }
${models.trimEnd()}
  page-model: { use: openai, baseUrl: "\${HOSTILE_URL}/html", model: m, apiKey: x }
tools: { own: { use: ./own.mjs }, mcp: { command: node, args: [./mcp.mjs] } }
agents:
  assistant: { model: fast, project: acme }
  caller: { model: fast, project: acme, tools: [own] }
  limited: { model: fast, project: acme, maxTokens: 20000 }
  translated: { model: gemini, project: acme, clientTools: passthrough }
${agents.trimEnd()}
  page: { model: page-model, project: acme }
  coder: { model: fast, project: acme, clientTools: passthrough }
  asking: { model: fast, project: acme, tools: [own], approve: write }
  served: { model: fast, project: acme, tools: [mcp] }
  other: { model: good, project: beta }
log: { level: error }
`;

/**
 * The files of a server under attack. `watch.mjs` measures for how long its event loop stands still
 * at most, and how much of that it works: during the rest it waits for a disk, or for a processor.
 */
export const FILES = {
  'plugboard.yaml': YAML,
  'mcp.mjs': HOSTILE_MCP,
  'watch.mjs': `
    import { definePlugin } from '@plugboard/kernel';
    import { HttpRoutes } from '@plugboard/transport-http';
    export default definePlugin({
      name: 'watch', apiVersion: 1, summary: 'Measures', configSchema: { type: 'object', properties: {} },
      register(ctx) {
        const none = { ms: 0, worked: 0 };
        let longest = none;
        let at = performance.now();
        let cpu = process.threadCpuUsage();
        setInterval(() => {
          const now = performance.now();
          const { user, system } = process.threadCpuUsage(cpu);
          if (now - at - 10 > longest.ms) longest = { ms: now - at - 10, worked: (user + system) / 1_000 };
          at = now;
          cpu = process.threadCpuUsage();
        }, 10).unref();
        ctx.contribute(HttpRoutes, {
          method: 'GET', path: '/longest', access: 'public', body: 'none', startsWork: false,
          handle: () => ({ status: 200, body: [longest, (longest = none)][0] }),
        });
      },
    });`,
  'own.mjs': `
    import { definePlugin, ToolSources } from '@plugboard/kernel';
    const properties = { q: { type: 'string' }, slow: { type: 'string', pattern: '^(a+)+$' } };
    const image = { type: 'image', mimeType: 'image/png', data: 'A'.repeat(10 * 1024 * 1024) };
    const tools = [
      { name: 'find', description: '', effect: 'read', inputSchema: { type: 'object', properties }, run: async () => 'found' },
      { name: 'send', description: '', effect: 'write', inputSchema: { type: 'object' }, run: async () => 'sent' },
      {
        name: 'shoot', description: '', effect: 'read', inputSchema: { type: 'object' },
        run: async () => ({ content: Array(6).fill(image) }),
      },
    ];
    export default definePlugin({
      name: 'own', apiVersion: 1, summary: 'Tools', configSchema: { type: 'object', properties: {} },
      register: (ctx) => ctx.contribute(ToolSources, { single: false, tools: async () => tools }),
    });`,
};
