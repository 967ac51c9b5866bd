import type { ToolDeclaration } from '@plugboard/kernel/contracts';

type ToolList = readonly ToolDeclaration[];

/**
 * Gives equal lists of tools one identity, so that what is kept with a list is made once: its
 * translation for a model server, its JSON, its size, its digest. A coding agent sends the same
 * tools with each step, and transports give equal tools the same frozen schemas.
 */
export class KnownToolLists {
  /** The last list, by the schema of the first tool of its caller. */
  readonly #lists = new WeakMap<object, ToolList>();

  /** Returns one list of the agent's tools and those of the caller, which are not empty. */
  of(own: ToolList, ofCaller: ToolList): ToolList {
    const list = [...own, ...ofCaller];
    const schema = ofCaller[0]?.inputSchema;
    if (schema === undefined || !ofCaller.every(({ inputSchema }) => Object.isFrozen(inputSchema))) return list;
    const known = this.#lists.get(schema);
    if (known !== undefined && isEqual(known, own, ofCaller)) return known;
    this.#lists.set(schema, list);
    return list;
  }
}

function isEqual(known: ToolList, own: ToolList, ofCaller: ToolList): boolean {
  if (known.length !== own.length + ofCaller.length || own.some((tool, index) => known[index] !== tool)) return false;
  return ofCaller.every((tool, index) => {
    const other = known[own.length + index];
    return (
      other?.inputSchema === tool.inputSchema &&
      other.name === tool.name &&
      other.description === tool.description &&
      other.strict === tool.strict
    );
  });
}
