import { setImmediate } from 'node:timers/promises';
import type { Account, Conversations, ConversationTurns } from '@plugboard/kernel/contracts';
import type { Page } from '@plugboard/openai-protocol';
import type { Item } from './item.js';
import { isSameItem, parseItemId } from './item-id.js';
import { itemsOf } from './turn-to-items.js';

const TURNS_AT_ONCE = 20;

/** Reads a page of turns of one conversation. */
export type ReadTurns = (page: Parameters<Conversations['turns']>[1]) => Promise<ConversationTurns>;

/**
 * Reads page after page: lets go of the turns that were read before, whose entries are on the page
 * of the reply as text, and lets other callers work in between.
 */
export function paced(account: Account, read: ReadTurns): ReadTurns {
  const before = account.reserved;
  let isFirst = true;
  return async (page) => {
    if (!isFirst) {
      await setImmediate(); // what was read is counted before more is
      await account.timeSlice();
      account.release(account.reserved - before); // a page stays in memory until the next one is read
    }
    isFirst = false;
    return read(page);
  };
}

/** Where to read items. */
export interface ItemRange {
  /** Maximum number of turns to read at once; the page decides how many items it takes. */
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** The id of the item to start after. */
  readonly after?: string | undefined;
}

/**
 * Fills a page with items of a conversation. Reads a few turns at a time, and no more than fit on
 * the page.
 *
 * @returns false if there is no item `after`.
 */
export async function readItems(
  conversation: string,
  read: ReadTurns,
  { limit, order, after }: ItemRange,
  page: Page,
): Promise<boolean> {
  const start = after === undefined ? undefined : await placeOf(conversation, read, after);
  if (after !== undefined && start?.conversation !== conversation) return false;
  let sought = after;
  let last = start && start.turn + (order === 'asc' ? -1 : 1);
  for (;;) {
    const maxBytes = Math.max(1, page.bytesLeft);
    const { turns, ...shown } = await read({ limit: Math.min(limit, TURNS_AT_ONCE), order, after: last, maxBytes });
    if (turns.length === 0) return sought === undefined;
    for (const turn of turns) {
      const own = itemsOf(turn, { conversation, ...shown });
      const inOrder = order === 'asc' ? own : own.toReversed();
      const from = sought === undefined ? 0 : inOrder.findIndex(({ id }) => isSameItem(id, sought ?? '')) + 1;
      if (sought !== undefined && from === 0) return false;
      sought = undefined;
      for (const item of inOrder.slice(from)) if (!page.add(item)) return true;
      last = turn.turn;
    }
  }
}

/** Finds an item and its turn; undefined if there is no such item. */
export async function findItem(
  conversation: string,
  read: ReadTurns,
  id: string,
): Promise<{ readonly item: Item; readonly turn: number; readonly isLast: boolean } | undefined> {
  const place = await placeOf(conversation, read, id);
  if (place?.conversation !== conversation) return undefined;
  const { turns, ...shown } = await read({ limit: 1, order: 'asc', after: place.turn - 1 });
  const items = turns.flatMap((turn) => itemsOf(turn, { conversation, ...shown }));
  const index = items.findIndex((item) => isSameItem(item.id, id));
  const item = items[index];
  return item && { item, turn: place.turn, isLast: index === items.length - 1 };
}

/**
 * Where an item is. The id of a request for approval is that of the response that asked: the
 * runtime knows its turn.
 */
async function placeOf(
  conversation: string,
  read: ReadTurns,
  id: string,
): Promise<{ readonly conversation: string; readonly turn: number } | undefined> {
  if (!id.startsWith('mcpr_')) return parseItemId(id);
  const { turns } = await read({ limit: 1, order: 'asc', approval: id });
  const asking = turns.find(({ record }) => record?.calls.some((call) => call.state === 'waiting' && call.approval === id));
  return asking && { conversation, turn: asking.turn };
}
