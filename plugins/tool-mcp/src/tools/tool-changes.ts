import { createHash } from 'node:crypto';
import type { ListedTool } from './listed-tools.js';

/** A tool as it was declared, for the audit log. */
interface Declared {
  readonly name: string;
  /** `sha256:` and 64 hexadecimal digits over the declaration. */
  readonly digest: string;
}

export interface ToolChanges {
  readonly added: readonly Declared[];
  readonly changed: readonly Declared[];
  readonly removed: readonly string[];
}

export function digestsOf(tools: readonly ListedTool[]): ReadonlyMap<string, string> {
  return new Map(tools.map((tool) => [tool.name, digestOf(tool)]));
}

/** What is different between two lists, whatever their order; undefined if nothing is. */
export function toolChanges(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): ToolChanges | undefined {
  const now = [...after].map(([name, digest]) => ({ name, digest }));
  const added = now.filter(({ name }) => !before.has(name));
  const changed = now.filter(({ name, digest }) => before.has(name) && before.get(name) !== digest);
  const removed = [...before.keys()].filter((name) => !after.has(name));
  return added.length + changed.length + removed.length === 0 ? undefined : { added, changed, removed };
}

function digestOf({ name, description, inputSchema, effect }: ListedTool): string {
  const declaration = JSON.stringify({ name, description, inputSchema, effect }, sorted);
  return `sha256:${createHash('sha256').update(declaration).digest('hex')}`;
}

/** The order of keys says nothing. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
