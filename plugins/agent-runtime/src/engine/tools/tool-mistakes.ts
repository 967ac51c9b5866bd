import type { Tool } from '@plugboard/kernel';

/** Says why what a plugin's `tools()` returned is not a list. */
export function listMistake(listed: unknown): string | undefined {
  return Array.isArray(listed) ? undefined : 'tools() did not return an array';
}

/** Says why an item of that list is not a tool. */
export function toolMistake(item: unknown): string | undefined {
  const tool = (item ?? {}) as Partial<Record<keyof Tool, unknown>>;
  if (typeof tool.name !== 'string' || tool.name === '') return 'tools() returned a tool without a name';
  const { name, description, inputSchema, run, verify } = tool;
  if (typeof description !== 'string') return `the tool "${name}" has no description`;
  if (typeof inputSchema !== 'object' || inputSchema === null) return `the tool "${name}" has no inputSchema`;
  const { type = 'object' } = inputSchema as { readonly type?: unknown };
  if (type !== 'object') return `the inputSchema of the tool "${name}" must have the type "object"`;
  if (typeof run !== 'function') return `the tool "${name}" has no run()`;
  if (verify !== undefined && typeof verify !== 'function') return `the member "verify" of the tool "${name}" is not a function`;
  return undefined;
}
