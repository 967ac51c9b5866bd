import type { ToolDeclaration } from '@plugboard/kernel/contracts';

type ToolList = readonly ToolDeclaration[];

/**
 * Gives equal lists of tools one identity, so that what is kept with a list is made once: its
 * translation for a model server, its JSON, its size, its digest. A coding agent sends the same
 * tools with each step, and transports give equal tools the same frozen schemas.
 */
export class KnownToolLists {
  /** The last list, by the schema of the first tool of a caller in it. */
  readonly #lists = new WeakMap<object, ToolList>();

  /** Returns the tools of an agent and those of a caller, of whom there are some. */
  of(own: ToolList, callers: ToolList): ToolList {
    const list = [...own, ...callers];
    const schema = callers[0]?.inputSchema;
    if (schema === undefined || !callers.every(({ inputSchema }) => Object.isFrozen(inputSchema))) return list;
    const known = this.#lists.get(schema);
    if (known !== undefined && isEqual(known, own, callers)) return known;
    this.#lists.set(schema, list);
    return list;
  }
}

function isEqual(known: ToolList, own: ToolList, callers: ToolList): boolean {
  if (known.length !== own.length + callers.length || own.some((tool, index) => known[index] !== tool)) return false;
  return callers.every((tool, index) => {
    const other = known[own.length + index];
    return (
      other?.inputSchema === tool.inputSchema &&
      other.name === tool.name &&
      other.description === tool.description &&
      other.strict === tool.strict
    );
  });
}
