import { isConversationId, type SessionInfo } from '@plugboard/kernel/contracts';

/** Where a page of the list ended. */
export type ListPlace = Pick<SessionInfo, 'conversation' | 'updatedAt'>;

/**
 * The cursor behind a conversation. It has the time of its last turn: a conversation that has
 * another one before the next page is read moves, and the page does not.
 */
export function listCursor({ conversation, updatedAt }: ListPlace): string {
  return `${conversation}_${updatedAt}`;
}

/** Parses a cursor; undefined if it is malformed. */
export function parseListCursor(text: string): ListPlace | undefined {
  const [, conversation = '', time] = /^(conv_[0-9a-f]{40})_(\d{1,15})$/.exec(text) ?? [];
  return isConversationId(conversation) ? { conversation, updatedAt: Number(time) } : undefined;
}
