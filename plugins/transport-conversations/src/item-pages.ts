import type { ConversationTurns, TurnPage } from '@plugboard/kernel/contracts';
import type { Item } from './item.js';
import { isSameItem, parseItemId } from './item-id.js';
import { itemsOf } from './turn-to-items.js';

const TURNS_AT_ONCE = 20;

/** Reads a page of turns of one conversation. */
export type ReadTurns = (page: TurnPage) => Promise<ConversationTurns>;

/**
 * Reads items of a conversation, a few turns at a time.
 *
 * @param limit stop after this many items.
 * @param after start after the item with this id.
 * @returns undefined if there is no item `after`.
 */
export async function readItems(
  conversation: string,
  read: ReadTurns,
  { limit, order, after }: { readonly limit: number; readonly order: 'asc' | 'desc'; readonly after?: string | undefined },
): Promise<readonly Item[] | undefined> {
  const start = after === undefined ? undefined : parseItemId(after);
  if (after !== undefined && start?.conversation !== conversation) return undefined;
  const turnsAtOnce = Math.min(limit, TURNS_AT_ONCE);
  const items: Item[] = [];
  let sought = after;
  let last = start && start.turn + (order === 'asc' ? -1 : 1);
  for (;;) {
    const { turns, ...shown } = await read({ limit: turnsAtOnce, order, after: last });
    for (const turn of turns) {
      const own = itemsOf(turn, { conversation, ...shown });
      const inOrder = order === 'asc' ? own : own.toReversed();
      const from = sought === undefined ? 0 : inOrder.findIndex(({ id }) => isSameItem(id, sought ?? '')) + 1;
      if (sought !== undefined && from === 0) return undefined;
      sought = undefined;
      items.push(...inOrder.slice(from));
      last = turn.turn;
    }
    if (sought !== undefined) return undefined;
    if (items.length >= limit || turns.length < turnsAtOnce) return items;
  }
}

/** Finds an item and its turn; undefined if there is no such item. */
export async function findItem(
  conversation: string,
  read: ReadTurns,
  id: string,
): Promise<{ readonly item: Item; readonly turn: number; readonly isLast: boolean } | undefined> {
  const place = parseItemId(id);
  if (place?.conversation !== conversation) return undefined;
  const { turns, ...shown } = await read({ limit: 1, order: 'asc', after: place.turn - 1 });
  const items = turns.flatMap((turn) => itemsOf(turn, { conversation, ...shown }));
  const index = items.findIndex((item) => isSameItem(item.id, id));
  const item = items[index];
  return item && { item, turn: place.turn, isLast: index === items.length - 1 };
}
