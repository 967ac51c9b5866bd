import type { Turn } from '@plugboard/kernel';
import { type ToolDeclaration, TurnError } from '@plugboard/kernel/contracts';
import type { Agent } from '../directory/agent.js';
import type { KnownToolLists } from './known-tool-lists.js';
import { byName, type Toolbox, toolboxWith } from './toolbox.js';

/** The tools that the model may call in one turn. */
export interface TurnTools {
  readonly toolbox: Toolbox;
  /** Those of the agent, and the caller's own. */
  readonly declarations: readonly ToolDeclaration[];
  /** Names of the caller's tools whose calls are shown while the model writes them. */
  readonly streamed: readonly string[];
}

const NONE: readonly string[] = [];

/**
 * @param known gives equal lists one identity.
 * @throws TurnError if a tool of the caller has the name of one of the agent.
 */
export function turnTools(all: Toolbox, agent: Agent, turn: Turn, known: KnownToolLists): TurnTools {
  const declared = toolboxWith(all, turn.tools);
  const { clientTools } = turn;
  if (clientTools.length === 0) return { toolbox: declared, declarations: declared.declarations, streamed: NONE };
  const toolbox = turn.session === undefined ? withoutReplaced(declared, agent, clientTools) : declared;
  assertDistinct(clientTools, toolbox);
  return {
    toolbox,
    declarations: known.of(toolbox.declarations, byName(clientTools)),
    streamed: turn.incremental ? clientTools.map(({ name }) => name) : NONE,
  };
}

/**
 * Restates the refusal of a tool, which a connection names by its place among `declarations`. A
 * tool of the caller is named by its place in the request. One of the agent is no mistake of the
 * caller: the turn fails.
 */
export function toolRefusal(error: unknown, { toolbox, declarations }: TurnTools, { clientTools }: Turn): unknown {
  if (!(error instanceof TurnError) || error.code !== 'invalid_request') return error;
  const [, index] = /^tools\[(\d+)\]$/.exec(error.options.param ?? '') ?? [];
  const name = index === undefined ? undefined : declarations[Number(index)]?.name;
  if (name === undefined) return error;
  if (toolbox.tools.has(name))
    return new TurnError('crashed', `A tool of the agent cannot be offered to the model. ${error.message}`, { cause: error });
  const param = `tools[${clientTools.findIndex((tool) => tool.name === name)}].function.parameters`;
  return new TurnError('invalid_request', error.message, { cause: error, param });
}

/**
 * Without a session nothing can wait for approval: a tool that needs it gives way to a client tool
 * of its name, so that the caller decides.
 */
function withoutReplaced(toolbox: Toolbox, agent: Agent, clientTools: readonly ToolDeclaration[]): Toolbox {
  const names = new Set(clientTools.map(({ name }) => name));
  const isReplaced = (name: string) => {
    const known = names.has(name) ? toolbox.tools.get(name) : undefined;
    return known !== undefined && agent.approves(known);
  };
  const kept = toolbox.declarations.filter(({ name }) => !isReplaced(name));
  return toolboxWith(toolbox, kept);
}

function assertDistinct(clientTools: readonly ToolDeclaration[], toolbox: Toolbox): void {
  const duplicate = clientTools.findIndex(({ name }) => toolbox.tools.has(name));
  if (duplicate < 0) return;
  const name = clientTools[duplicate]?.name;
  throw new TurnError('invalid_request', `The tool '${name}' has the same name as one of the agent's own tools; rename it.`, {
    param: `tools[${duplicate}].function.name`,
  });
}
