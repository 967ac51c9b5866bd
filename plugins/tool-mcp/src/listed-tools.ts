import type { Tool } from '@plugboard/kernel';

/** A tool as a server lists it, checked. */
export type ListedTool = Omit<Tool, 'run'>;

/**
 * The tools of a list that can be offered, in the server's order.
 *
 * @param listed what the server wrote.
 * @param leaveOut is told of each that cannot be offered, and why.
 */
export function listedTools(listed: readonly unknown[], leaveOut: (name: string, why: string) => void): readonly ListedTool[] {
  const tools: ListedTool[] = [];
  for (const item of listed) {
    const tool = record(item);
    const { name, description } = tool;
    if (typeof name !== 'string' || name === '') {
      leaveOut('', 'it has no name');
      continue;
    }
    if (tools.some((other) => other.name === name)) {
      leaveOut(name, 'the list has an earlier tool of this name');
      continue;
    }
    const inputSchema = record(tool.inputSchema);
    if (inputSchema.type !== 'object') {
      leaveOut(name, 'its inputSchema is no schema of an object');
      continue;
    }
    if (record(tool.execution).taskSupport === 'required') {
      leaveOut(name, 'it can only be run as a task of MCP, which Plugboard does not do');
      continue;
    }
    tools.push({
      name,
      description: typeof description === 'string' ? description : '',
      inputSchema,
      effect: effectOf(record(tool.annotations)),
    });
  }
  return tools;
}

/** MCP's hints, each of which is false where it is absent. */
function effectOf(annotations: Readonly<Record<string, unknown>>): Tool['effect'] {
  if (annotations.readOnlyHint === true) return 'read';
  return annotations.idempotentHint === true ? 'idempotent' : 'write';
}

/** The value if it is an object; else one with nothing in it, which every check that follows refuses. */
function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {};
}
