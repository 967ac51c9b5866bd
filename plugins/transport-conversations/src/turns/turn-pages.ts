import type { Page } from '@plugboard/openai-protocol';
import type { ItemRange, ReadTurns } from '../items/item-pages.js';
import { parseTurnId, turnEntry } from './turn-entry.js';

const TURNS_AT_ONCE = 20;

/**
 * Fills a page with the turns of a conversation.
 *
 * @returns false if there is no turn `after`.
 */
export async function readTurns(
  conversation: string,
  read: ReadTurns,
  { limit, order, after }: ItemRange,
  page: Page,
): Promise<boolean> {
  const start = after === undefined ? undefined : parseTurnId(after);
  if (after !== undefined && start?.conversation !== conversation) return false;
  for (let last = start?.turn; ; ) {
    const maxBytes = Math.max(1, page.bytesLeft);
    const { turns, ...shown } = await read({ limit: Math.min(limit + 1, TURNS_AT_ONCE), order, after: last, maxBytes });
    for (const turn of turns) if (!page.add(turnEntry(turn, { conversation, ...shown }))) return true;
    last = turns.at(-1)?.turn;
    if (last === undefined) return true;
  }
}
