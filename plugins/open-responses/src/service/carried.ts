import type { Message } from '@plugboard/kernel';
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
}

export const NOTHING_CARRIED: Carried = { system: [], tools: [] };

export function isNothing({ system, tools }: Carried): boolean {
  return system.length === 0 && tools.length === 0;
}
