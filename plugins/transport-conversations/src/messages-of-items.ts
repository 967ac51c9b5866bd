import { type InputMessages, messagesOf as messagesOfItems, namingItems as restating } from '@plugboard/open-responses';
import { emptyArray } from '@plugboard/openai-protocol';

/** The reference's own figure. */
const MAX_ITEMS = 20;

/**
 * The messages that the caller's `items` stand for.
 *
 * @param textOnly the name of the model connection if it takes text only.
 * @throws ProtocolError 400 that names the first item that a session cannot hold.
 */
export function messagesOf(items: unknown, textOnly: string | undefined): InputMessages {
  return messagesOfItems(items, { param: 'items', maxItems: MAX_ITEMS, textOnly, purpose: 'session' });
}

/** The same for a request that must bring at least one. @throws ProtocolError 400 */
export function someMessagesOf(items: unknown, textOnly: string | undefined): InputMessages {
  if (Array.isArray(items) && items.length === 0) throw emptyArray('items');
  return messagesOf(items, textOnly);
}

/** Restates what the runtime says about messages in terms of `items`. */
export function namingItems<T>(given: InputMessages, work: Promise<T>): Promise<T> {
  return restating(given, 'items', work);
}
