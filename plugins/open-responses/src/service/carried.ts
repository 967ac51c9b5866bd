import type { Message } from '@plugboard/kernel';
import { mergeTools } from '../request/client-tools.js';
import type { RequestTool } from '../request/request.js';

/**
 * What the items of a conversation say besides its messages. It holds for the responses that
 * continue the conversation: their requests have the new items only.
 */
export interface Carried {
  /** The system and developer messages. */
  readonly system: readonly Message[];
  /** The tools that `additional_tools` items added. */
  readonly tools: readonly RequestTool[];
  /** Where some of it is stored already; undefined if none of it is. */
  readonly stored?: StoredParts | undefined;
}

/** Parts of what a response carries, each of which is stored once with its session. */
export interface StoredParts {
  /** The opaque id of the session. */
  readonly conversation: string;
  /** The names of their documents, in order. */
  readonly names: readonly string[];
  /** The messages and tools in them. */
  readonly items: ReadonlySet<Message | RequestTool>;
}

/** Bytes, as JSON, that are stored with each response; more of it becomes a part. */
const MAX_WITH_RESPONSE = 4_096;

export const NOTHING_CARRIED: Carried = { system: [], tools: [] };

export function isNothing({ system, tools }: Carried): boolean {
  return system.length === 0 && tools.length === 0;
}

/** What a response adds to the parts that are stored with its session. */
export function addedTo(conversation: string, { system, tools, stored }: Carried): AddedCarried {
  const parts = stored?.conversation === conversation ? stored : undefined;
  const isNew = (item: Message | RequestTool) => !parts?.items.has(item);
  const added = { system: system.filter(isNew), tools: tools.filter(isNew) };
  const text = isNothing(added) ? undefined : JSON.stringify(added);
  return { names: parts?.names ?? [], text, isPart: text !== undefined && Buffer.byteLength(text) > MAX_WITH_RESPONSE };
}

interface AddedCarried {
  /** Those parts. */
  readonly names: readonly string[];
  /** As JSON; undefined if nothing is added. */
  readonly text: string | undefined;
  /** Whether it becomes a part, too. */
  readonly isPart: boolean;
}

/** Joins the parts, by their names, with what is stored with the response itself. */
export function joinCarried(conversation: string, parts: ReadonlyMap<string, Carried>, own: Carried): Carried {
  const all = [...parts.values(), own];
  return {
    system: all.flatMap(({ system }) => system),
    tools: mergeTools(all.map(({ tools }) => tools)),
    stored: {
      conversation,
      names: [...parts.keys()],
      items: new Set([...parts.values()].flatMap(({ system, tools }) => [...system, ...tools])),
    },
  };
}
