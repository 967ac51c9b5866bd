import { conversationId } from '@plugboard/kernel/contracts';
import type { ItemView } from '../../src/items/turn-to-items.js';

/** An opaque id, as conversations have them. */
export const ID = conversationId({ project: 'default', agent: 'assistant', key: 's' });

/** Its part of the ids of its items. */
export const DIGEST = ID.slice('conv_'.length);

/** An agent that has one tool, and lets everything be seen of it. */
export const VIEW: ItemView = {
  conversation: ID,
  toolVisibility: 'full',
  toolOf: (name) => (name === 'files__read' ? { entry: 'files', name: 'read' } : undefined),
};
