import { fileURLToPath } from 'node:url';
import type { StartServerOptions } from '@plugboard/testing';
import { TRANSPORTS } from './test-server.js';

/** An agent with real tools: the clock, and an MCP server that reads the files of a folder. */
export const WITH_TOOLS = `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
tools:
  clock: {}
  files: { use: mcp, command: "\${NODE}", args: ["\${FILES_SERVER}", ./shelf] }
agents:
  assistant: { model: fast, system: You are the assistant., tools: [clock, "files/*"] }
  bare: { model: fast }
`;

/** What goes with it. */
export const toolFixtures = {
  files: { 'shelf/treasure.txt': 'The treasure lies under the oak.' },
  env: {
    NODE: process.execPath,
    FILES_SERVER: fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-filesystem/dist/index.js')),
  },
} satisfies StartServerOptions;

/** The model's call for the text of the file. */
export const readTreasure = { id: 'call_read', name: 'files__read_text_file', arguments: { path: 'treasure.txt' } };
