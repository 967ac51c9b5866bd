import type { Aliases } from '../schema/aliases.js';

/** Something that becomes an argument. */
interface Named {
  readonly name: string;
  /** `path`, `query`, `header`, `cookie`, `querystring` or `body`. */
  readonly in: string;
}

/**
 * Names the arguments of a tool (OAS-6): each as it is called, and where names meet, with the
 * place: `path_id`, `query_id`, `body_id`. Keys that providers refuse get an alias.
 *
 * @returns a name for each, in the same order.
 */
export function argumentNames(all: readonly Named[], aliases: Aliases): readonly string[] {
  const owners = new Map<string, number>();
  for (const { name } of all) owners.set(name, (owners.get(name) ?? 0) + 1);
  const taken = new Set(all.map(({ name }) => name).filter((name) => owners.get(name) === 1));
  return all.map((one) => {
    if (owners.get(one.name) === 1) return aliases.of(one.name);
    let name = `${one.in}_${one.name}`;
    while (taken.has(name)) name = `${one.in}_${name}`; // longer each time
    taken.add(name);
    return aliases.of(name);
  });
}
