import { type InputMessages, messagesOf as messagesOfItems } from '@plugboard/open-responses';
import { emptyArray } from '@plugboard/openai-protocol';

/** The reference's limit. */
const MAX_ITEMS = 20;

/**
 * Converts the field `items` to messages.
 *
 * @param textOnly the name of the model connection if it takes text only.
 * @throws ProtocolError 400 that names the first item that a session cannot hold.
 */
export function messagesOf(items: unknown, textOnly: string | undefined): InputMessages {
  return messagesOfItems(items, { param: 'items', maxItems: MAX_ITEMS, textOnly, purpose: 'session' });
}

/** Like `messagesOf`, but requires at least one item. @throws ProtocolError 400 */
export function someMessagesOf(items: unknown, textOnly: string | undefined): InputMessages {
  if (Array.isArray(items) && items.length === 0) throw emptyArray('items');
  return messagesOf(items, textOnly);
}
