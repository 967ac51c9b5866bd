import type { Tool } from '@plugboard/kernel';
import type { AgentSettings } from '../../config.js';

/** The word for all tools that do not only read. */
export const WRITE = 'write';

export interface RuledTool {
  readonly entry: string;
  readonly tool: Pick<Tool, 'name'>;
  readonly effect: Tool['effect'];
  /** Whether the tool is new, or another one than when the agents were made. */
  readonly isChanged: boolean;
}

/**
 * Returns whether a person must approve the calls of a tool, by the agent's option `approve`. With
 * the option, that includes every tool that could not be known when the agents were made (S-73).
 */
export function approvalRule(approve: AgentSettings['approve']): (tool: RuledTool) => boolean {
  const patterns = typeof approve === 'string' ? [approve] : approve;
  return ({ entry, tool, effect, isChanged }) =>
    patterns.some((pattern) => isChanged || (pattern === WRITE ? effect !== 'read' : matches(pattern, entry, tool.name)));
}

/** `name`, `name/tool` or `name/*`, with `*` anywhere in the tool's name. */
function matches(pattern: string, entry: string, tool: string): boolean {
  const slash = pattern.indexOf('/');
  if (slash < 0) return pattern === entry;
  if (pattern.slice(0, slash) !== entry) return false;
  const [first = '', ...parts] = pattern.slice(slash + 1).split('*');
  if (parts.length === 0) return tool === first;
  const last = parts.pop() ?? '';
  if (!tool.startsWith(first) || tool.length < first.length + last.length || !tool.endsWith(last)) return false;
  let from = first.length;
  for (const part of parts) {
    const found = tool.indexOf(part, from);
    if (found < 0) return false;
    from = found + part.length;
  }
  return from + last.length <= tool.length;
}
