import type { ConfigProblem, Extensions, Tool, ToolSource } from '@plugboard/kernel';
import { nearest } from '@plugboard/kernel/contracts';
import type { RuntimeSettings } from '../../config.js';
import { toolEntry } from './check-config.js';

/**
 * Finds tools that agents name and their entries do not have, of the entries that know their tools
 * before the start.
 */
export function checkTools(agents: RuntimeSettings['agents'], sources: Extensions<ToolSource>): ConfigProblem[] {
  return Object.entries(agents).flatMap(([name, { tools }]) =>
    tools.flatMap((pattern, index) => {
      const source = sources.get(toolEntry(pattern));
      const known = source ? knownTools(source) : [];
      const message = known.length > 0 ? unknownTool(pattern, known) : undefined;
      return message === undefined ? [] : [{ path: ['agents', name, 'tools', index], message }];
    }),
  );
}

/** What is wrong with a pattern that names one tool; undefined if the entry has it. */
export function unknownTool(pattern: string, tools: readonly Tool[]): string | undefined {
  const entry = toolEntry(pattern);
  const wanted = pattern.slice(entry.length + 1);
  const offered = tools.map(({ name }) => name);
  if (wanted === '' || wanted === '*' || offered.includes(wanted)) return undefined;
  const near = nearest(wanted, offered);
  if (near !== undefined) return `unknown tool "${wanted}", did you mean "${entry}/${near}"?`;
  return `unknown tool "${wanted}"; entry "${entry}" offers ${offered.join(', ') || 'nothing'}`;
}

/** The tools that a source knows before the start: all of them, or none. */
function knownTools(source: ToolSource): readonly Tool[] {
  try {
    const tools = source.tools(AbortSignal.abort());
    if (tools instanceof Promise) tools.catch(() => {}); // only the start waits for it
    return Array.isArray(tools) ? tools : [];
  } catch {
    return []; // reported by the start
  }
}
