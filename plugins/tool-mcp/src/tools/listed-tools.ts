import type { Tool } from '@plugboard/kernel';

/** A tool as a server lists it, checked. */
export type ListedTool = Omit<Tool, 'run'>;

/**
 * Returns the valid tools of a list, in the server's order.
 *
 * @param listed the entries as the server sent them.
 * @param onSkip called for each tool that is not valid, with the reason.
 * @param faultOf a further reason to skip a tool, by its inputSchema.
 */
export function listedTools(
  listed: readonly unknown[],
  onSkip: (name: string, reason: string) => void,
  faultOf: (inputSchema: unknown) => string | undefined = () => undefined,
): readonly ListedTool[] {
  const tools: ListedTool[] = [];
  const names = new Set<string>();
  for (const item of listed) {
    const tool = record(item);
    const { name, description } = tool;
    if (typeof name !== 'string' || name === '') {
      onSkip('', 'it has no name');
      continue;
    }
    if (names.has(name)) {
      onSkip(name, 'the list has an earlier tool of this name');
      continue;
    }
    const inputSchema = record(tool.inputSchema);
    if (inputSchema.type !== 'object') {
      onSkip(name, 'its inputSchema is not the schema of an object');
      continue;
    }
    if (record(tool.execution).taskSupport === 'required') {
      onSkip(name, 'it can only run as an MCP task, which is not supported');
      continue;
    }
    const fault = faultOf(inputSchema);
    if (fault !== undefined) {
      onSkip(name, fault);
      continue;
    }
    names.add(name);
    tools.push({
      name,
      description: typeof description === 'string' ? description : '',
      inputSchema,
      effect: effectOf(record(tool.annotations)),
    });
  }
  return tools;
}

/** Hints only tighten: what is destructive is not believed to be harmless as well. */
function effectOf(annotations: Readonly<Record<string, unknown>>): Tool['effect'] {
  if (annotations.destructiveHint === true) return 'write';
  if (annotations.readOnlyHint === true) return 'read';
  return annotations.idempotentHint === true ? 'idempotent' : 'write';
}

/** The value if it is an object, otherwise an empty one, which all further checks refuse. */
function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {};
}
