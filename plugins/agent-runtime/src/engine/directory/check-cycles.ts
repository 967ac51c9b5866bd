import type { ConfigProblem, Extensions, ToolSource } from '@plugboard/kernel';
import type { RuntimeSettings } from '../../config.js';
import { toolEntry } from './check-config.js';

/** A tool of an agent that asks another one, without a depth of its own in the file. */
interface Edge {
  /** The place of its pattern in the agent's `tools`. */
  readonly index: number;
  readonly entry: string;
  readonly agent: string;
}

/**
 * Finds agents that ask each other in a circle. One entry on the way that sets `depth` allows the
 * circle: its author has thought of it (AG-11).
 */
export function checkCycles(agents: RuntimeSettings['agents'], tools: Extensions<ToolSource>): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const done = new Set<string>();
  const visit = (agent: string, way: readonly (Edge & { readonly from: string })[]): void => {
    const start = way.findIndex(({ from }) => from === agent);
    if (start >= 0) problems.push(circle(way.slice(start)));
    if (start >= 0 || done.has(agent)) return;
    for (const edge of edgesOf(agents[agent]?.tools ?? [], tools)) visit(edge.agent, [...way, { ...edge, from: agent }]);
    done.add(agent);
  };
  for (const agent of Object.keys(agents)) visit(agent, []);
  return problems;
}

function edgesOf(patterns: readonly string[], tools: Extensions<ToolSource>): Edge[] {
  return patterns.flatMap((pattern, index) => {
    const entry = toolEntry(pattern);
    const { asks } = tools.get(entry) ?? {};
    return asks && !asks.setsDepth ? [{ index, entry, agent: asks.agent }] : [];
  });
}

function circle(way: readonly (Edge & { readonly from: string })[]): ConfigProblem {
  const [{ from, index }] = way as readonly [Edge & { readonly from: string }];
  const names = way.map((edge) => `"${edge.from}" asks "${edge.agent}" by tools.${edge.entry}`);
  const entries = [...new Set(way.map(({ entry }) => `tools.${entry}`))];
  return {
    path: ['agents', from, 'tools', index],
    message: `agents ask each other in a circle: ${names.join(', ')}; set "depth" of ${entries.join(' or ')} to allow it`,
  };
}
