import { type Block, blocksOf } from './content.js';
import { join } from './fields.js';

/** Block types of messages of the role `system` that change the tools of the request. */
export const TOOL_CHANGES: readonly string[] = ['tool_addition', 'tool_removal'];

/** The changes of the tools, in their order. Messages that are malformed have none. */
export function toolChangesIn(messages: unknown): readonly Block[] {
  if (!Array.isArray(messages)) return [];
  return messages.flatMap((message, index) => {
    if (message?.role !== 'system' || !Array.isArray(message.content)) return [];
    const blocks = blocksOf(message.content, join(join('messages', index), 'content'));
    return blocks.filter(({ type }) => TOOL_CHANGES.includes(type));
  });
}
