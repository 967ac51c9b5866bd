import type { Tool } from '@plugboard/kernel';
import type { AgentSettings } from '../config.js';

/** The word for all tools whose second call has a second effect. */
export const WRITE = 'write';

interface NamedTool {
  readonly entry: string;
  readonly tool: Pick<Tool, 'name' | 'effect'>;
}

/** Returns whether a person must approve the calls of a tool, by the agent's option `approve`. */
export function approvalRule(approve: AgentSettings['approve']): (tool: NamedTool) => boolean {
  const patterns = typeof approve === 'string' ? [approve] : approve;
  return ({ entry, tool }) =>
    patterns.some((pattern) => (pattern === WRITE ? (tool.effect ?? WRITE) === WRITE : matches(pattern, entry, tool.name)));
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
