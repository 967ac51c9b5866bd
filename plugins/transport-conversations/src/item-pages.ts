import type { ConversationTurns, TurnPage } from '@plugboard/kernel';
import type { Item } from './item.js';
import { isSameItem, whereabouts } from './item-id.js';
import { itemsOf } from './items-of-turn.js';

const TURNS_AT_ONCE = 20;

/** Reads turns of one conversation. */
export type ReadTurns = (page: TurnPage) => Promise<ConversationTurns>;

/**
 * The items of a conversation in the order asked for, from turns that are read a few at a time.
 *
 * @param limit so many are enough.
 * @param after the id of the item that they follow.
 * @returns undefined where there is no such item.
 */
export async function readItems(
  conversation: string,
  read: ReadTurns,
  { limit, order, after }: { readonly limit: number; readonly order: 'asc' | 'desc'; readonly after?: string | undefined },
): Promise<readonly Item[] | undefined> {
  const start = after === undefined ? undefined : whereabouts(after);
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

/** One item, with those that share its turn; undefined where there is none of that id. */
export async function findItem(
  conversation: string,
  read: ReadTurns,
  id: string,
): Promise<{ readonly item: Item; readonly turn: number; readonly isLast: boolean } | undefined> {
  const place = whereabouts(id);
  if (place?.conversation !== conversation) return undefined;
  const { turns, ...shown } = await read({ limit: 1, order: 'asc', after: place.turn - 1 });
  const items = turns.flatMap((turn) => itemsOf(turn, { conversation, ...shown }));
  const index = items.findIndex((item) => isSameItem(item.id, id));
  const item = items[index];
  return item && { item, turn: place.turn, isLast: index === items.length - 1 };
}
