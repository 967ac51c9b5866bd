import { type Contribution, type DefinedPlugin, definePlugin, type Tool, type ToolSource, ToolSources } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import { playing, toolErrors } from './replayer.js';

/**
 * A plugin that declares the tools of an entry and runs none of them. An entry that knows its tools
 * only once it has started, such as an MCP server, declares those of the recorded turn: nothing is
 * started.
 *
 * @param listed the tools that the entry lists without a start.
 * @param named the names of tools that agents refer to.
 */
export function standIn(
  { name: entry, value }: Contribution<ToolSource>,
  listed: readonly Tool[],
  named: readonly string[],
): DefinedPlugin {
  const single = value.single ?? false;
  const declared = listed.map(({ name, description, inputSchema, effect }) => silent(name, description, inputSchema, effect));
  const source: ToolSource = {
    single,
    tools() {
      if (value.asks && isBelowDepth(entry)) return [];
      return listed.length > 0 ? declared : (recordedTools(entry, single) ?? named.map((name) => silent(name)));
    },
  };
  return definePlugin({
    name: '@plugboard/plugin-record/tools',
    apiVersion: 1,
    summary: 'Declares tools that do not run',
    configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, source),
  });
}

/**
 * Whether the turn that is replayed was too deep below its root to ask the entry's agent. A replay
 * has no root: the recording knows.
 */
function isBelowDepth(entry: string): boolean {
  const recording = playing.getStore()?.recording;
  if (!recording?.turn.parent) return false;
  return recording.attempts.every((attempt) => attempt.tools.every(({ name }) => name !== entry));
}

/** The tools of the entry in the turn that is replayed; undefined outside of a turn. */
function recordedTools(entry: string, single: boolean): readonly Tool[] | undefined {
  const playback = playing.getStore();
  if (!playback) return undefined;
  const { attempts, turn } = playback.recording;
  const clients = new Set(turn.request.clientTools.map(({ name }) => name));
  const declared = attempts.find(({ step }) => step > 0)?.tools ?? [];
  const prefix = `${entry.replace(/[^a-zA-Z0-9_-]/g, '_')}__`;
  const own = (tool: ToolDeclaration) => (single ? tool.name === entry : tool.name.startsWith(prefix));
  return declared
    .filter((tool) => own(tool) && !clients.has(tool.name))
    .map(({ name, description, inputSchema }) => known(single ? name : name.slice(prefix.length), description, inputSchema));
}

/** Equal tools of several turns are one: its schema is compiled once. */
const tools = new Map<string, Tool>();

function known(name: string, description: string, inputSchema: Tool['inputSchema']): Tool {
  const key = JSON.stringify([name, description, inputSchema]);
  const tool = tools.get(key) ?? silent(name, description, inputSchema);
  tools.set(key, tool);
  return tool;
}

function silent(
  name: string,
  description = '',
  inputSchema: Tool['inputSchema'] = { type: 'object' },
  effect?: Tool['effect'],
): Tool {
  return {
    name,
    description,
    inputSchema,
    ...(effect && { effect }),
    run: (_, { id }) => {
      throw toolErrors.get(id) ?? new Error('tools do not run while turns are replayed');
    },
  };
}
