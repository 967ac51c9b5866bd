import { createHash } from 'node:crypto';
import type { Tool } from '@plugboard/kernel';

/** A tool as it was declared, for the audit log. */
interface Declared {
  readonly name: string;
  /** `sha256:` and 64 hexadecimal digits over the declaration. */
  readonly digest: string;
}

interface ToolChanges {
  readonly added: readonly Declared[];
  readonly changed: readonly Declared[];
  readonly removed: readonly string[];
}

/** What is different between two lists, whatever their order; undefined if nothing is. */
export function toolChanges(before: readonly Tool[], after: readonly Tool[]): ToolChanges | undefined {
  const old = new Map(before.map((tool) => [tool.name, digestOf(tool)]));
  const now = after.map((tool) => ({ name: tool.name, digest: digestOf(tool) }));
  const added = now.filter(({ name }) => !old.has(name));
  const changed = now.filter(({ name, digest }) => old.has(name) && old.get(name) !== digest);
  for (const { name } of now) old.delete(name);
  const removed = [...old.keys()];
  return added.length + changed.length + removed.length === 0 ? undefined : { added, changed, removed };
}

function digestOf({ name, description, inputSchema, effect }: Tool): string {
  const declaration = JSON.stringify({ name, description, inputSchema, effect }, sorted);
  return `sha256:${createHash('sha256').update(declaration).digest('hex')}`;
}

/** The order of keys says nothing. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
