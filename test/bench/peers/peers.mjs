// The servers that `--peers` measures beside Plugboard: how each is started and asked.
import { kinds } from '../load.mjs';

const whole = (text) => text.includes('token099');
/** Of chat completions, as Plugboard is asked. */
const chat = { json: kinds.json, burst: kinds.burst, slow: kinds.slow, tool: kinds.tool };

/** The kinds of turns of a server with paths of its own. */
function turns(kindOf) {
  return {
    json: { ...kindOf('assistant', 'json', false), complete: whole },
    burst: { ...kindOf('assistant', 'burst', true), complete: whole },
    slow: { ...kindOf('assistant', 'slow', true), complete: whole },
    tool: { ...kindOf('clerk', 'tool', false), complete: whole },
  };
}

/** @returns the servers, each with its folder here, its main file there, and its kinds of turns. */
export function peers(modelUrl) {
  const toModel = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': modelUrl, authorization: 'Bearer none' };
  const portkey = Object.fromEntries(Object.entries(chat).map(([name, kind]) => [name, { ...kind, headers: toModel }]));
  return [
    { name: 'openai SDK', folder: 'openai-sdk', package: 'openai', main: 'server.mjs', turns: chat },
    { name: 'AI SDK', folder: 'ai-sdk', package: 'ai', main: 'server.mjs', turns: chat },
    {
      name: 'Portkey gateway',
      folder: 'portkey',
      package: '@portkey-ai/gateway',
      main: 'node_modules/@portkey-ai/gateway/build/start-server.js',
      args: (port) => [`--port=${port}`, '--headless'],
      // Its streams fail with a newer @hono/node-server than 1.3, so package.json names that one.
      // A gateway has no tools of its own.
      turns: { ...portkey, tool: undefined },
    },
    {
      name: 'VoltAgent',
      folder: 'voltagent',
      package: '@voltagent/core',
      main: 'server.mjs',
      turns: turns((agent, input, stream) => ({ path: `/agents/${agent}/${stream ? 'stream' : 'text'}`, fields: { input } })),
    },
    {
      name: 'Mastra',
      folder: 'mastra',
      package: '@mastra/core',
      main: 'server.mjs',
      turns: turns((agent, content, stream) => ({
        path: `/api/agents/${agent}/${stream ? 'stream' : 'generate'}`,
        fields: { messages: [{ role: 'user', content }] },
      })),
    },
  ];
}
