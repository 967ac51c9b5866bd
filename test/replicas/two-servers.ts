import { definePlugin, SessionStores } from '@plugboard/kernel';
import type { Test } from 'tap';
import { SharedMemory, type SharedServer } from '../../plugins/agent-runtime/test/sessions/shared/shared-memory.js';
import { TestServer } from '../support/test-server.js';

/** Two whole servers that share a store in memory. */
export async function twoServers(t: Test) {
  const memory = new SharedMemory();
  const start = async () => {
    const store = memory.server();
    return { store, app: await TestServer.start(t, (models) => configOf(store, models)) };
  };
  return { memory, one: await start(), two: await start() };
}

/** What a server has in its file to use a store of a test. */
export function sessionsOf({ store }: SharedServer) {
  const use = definePlugin({
    name: 'shared-memory',
    apiVersion: 1,
    summary: 'Keeps sessions in memory, for several servers of one test',
    configSchema: { type: 'object', properties: {}, additionalProperties: false },
    register: ({ contribute }) => contribute(SessionStores, store),
  });
  return { use };
}

function configOf(server: SharedServer, models: string) {
  return {
    transports: {
      http: { port: 0 },
      'chat-completions': {},
      models: {},
      health: {},
      sse: {},
      responses: {},
      websocket: {},
      conversations: {},
    },
    models: { fast: { use: 'openai', baseUrl: models, model: 'big-1' } },
    agents: { assistant: { model: 'fast' } },
    sessions: sessionsOf(server),
  };
}
