import type { Incoming } from '@plugboard/channel-kit';
import type { Message, Update, User } from 'grammy/types';
import type { BotAccount } from '../api/bot-account.js';
import type { Address } from '../chats/address.js';
import { attachmentsOf, type ImageReference } from './attachments.js';
import { readText } from './read-text.js';

export type TelegramMessage = Incoming<Address, ImageReference>;

/** The message of an update, or undefined if no agent is to see it. */
export function incomingMessage({ update_id, message }: Update, bot: BotAccount): TelegramMessage | undefined {
  if (message === undefined || !isFromPerson(message)) return undefined;
  const { images, unsupported } = attachmentsOf(message);
  const { text, isAddressed } = readText(message, bot);
  // A service message: somebody came, a title changed.
  if (text === '' && images.length === 0 && unsupported === undefined) return undefined;
  const isPrivate = message.chat.type === 'private';
  return {
    ids: [`${bot.id}/update/${update_id}`, `${bot.id}/message/${message.chat.id}/${message.message_id}`],
    ...placeOf(message),
    id: String(message.message_id),
    sender: senderOf(message.from),
    text,
    quoted: quotedBy(message, bot),
    images,
    isPrivate,
    isAddressed: isPrivate || isAddressed || isReplyTo(message, bot),
    unsupported,
  };
}

/** A press of one of the bot's buttons. */
export function incomingPress({ update_id, callback_query: press }: Update, bot: BotAccount): TelegramMessage | undefined {
  const { message, data, from } = press ?? {};
  if (!press || !message || data === undefined || from === undefined || from.is_bot) return undefined;
  return {
    ids: [`${bot.id}/update/${update_id}`, `${bot.id}/press/${press.id}`],
    ...placeOf(message),
    sender: senderOf(from),
    text: data,
    press: data,
    isPrivate: message.chat.type === 'private',
    isAddressed: true,
  };
}

/** The chat and topic of a message, for its session and for replies. */
export function placeOf({
  chat,
  is_topic_message,
  message_thread_id,
}: Pick<Message, 'chat' | 'is_topic_message' | 'message_thread_id'>): {
  readonly chat: string;
  readonly thread: string | undefined;
  readonly to: Address;
} {
  // Replies in groups without topics have a thread, too. The topic "General" has none.
  const thread = is_topic_message === true ? message_thread_id : undefined;
  return { chat: String(chat.id), thread: thread === undefined ? undefined : String(thread), to: { chat: chat.id, thread } };
}

/** Not a bot, nor a channel or group that writes under its own name. */
function isFromPerson(message: Message): message is Message & { readonly from: User } {
  const { from, sender_chat, chat, is_automatic_forward, business_connection_id } = message;
  if (from === undefined || from.is_bot || sender_chat !== undefined || is_automatic_forward === true) return false;
  return chat.type !== 'channel' && business_connection_id === undefined;
}

function senderOf({ id, first_name, last_name }: User): { readonly id: string; readonly name: string } {
  return { id: String(id), name: last_name === undefined ? first_name : `${first_name} ${last_name}` };
}

/** Whether it replies to the bot. Every message of a topic replies to what began the topic. */
function isReplyTo({ reply_to_message: replied }: Message, bot: BotAccount): boolean {
  return replied?.from?.id === bot.id && replied.forum_topic_created === undefined;
}

/** What it replies to, if somebody else wrote that. */
function quotedBy({ reply_to_message: replied, quote, external_reply, from }: Message, bot: BotAccount): string | undefined {
  if (replied === undefined) return external_reply === undefined ? undefined : quote?.text;
  if (replied.from?.id === bot.id || replied.from?.id === from?.id || replied.forum_topic_created !== undefined) return undefined;
  return quote?.text ?? replied.text ?? replied.caption;
}
