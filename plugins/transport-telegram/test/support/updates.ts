import type { Message, MessageEntity, Update } from 'grammy/types';
import { BOT } from './telegram-server.js';

export const ANN = { id: 101, is_bot: false, first_name: 'Ann', last_name: 'Lee' } as const;
export const BEN = { id: 102, is_bot: false, first_name: 'Ben' } as const;
export const GROUP = { id: -500, type: 'group', title: 'Team' } as const;
export const FORUM = { id: -1_000_000_000_777, type: 'supergroup', title: 'Forum', is_forum: true } as const;

/** An update without its id. */
export type NewUpdate = Omit<Update, 'update_id'>;

let nextMessage = 1;

/** A message of Ann in her private chat, unless `fields` say otherwise. */
export function messageOf(fields: Partial<Message> = {}): NewUpdate & { readonly message: Message } {
  const from = fields.from ?? ANN;
  const text = fields.text;
  const entities = text === undefined ? {} : { entities: entitiesOf(text) };
  const message = {
    message_id: nextMessage++,
    date: 1,
    from,
    chat: { id: from.id, type: 'private', first_name: from.first_name },
    ...entities,
    ...fields,
  };
  return { message: message as Message & Update.NonChannel };
}

/** A press of a button below a message of the bot. */
export function pressOf(
  data: string,
  from: Message['from'] = ANN,
  chat: Message['chat'] = { id: ANN.id, type: 'private', first_name: 'Ann' },
): NewUpdate {
  const rows = [
    [
      { text: 'Approve', callback_data: 'approve K7M2QX' },
      { text: 'Deny', callback_data: 'deny K7M2QX' },
    ],
    [
      { text: 'Approve', callback_data: 'approve AAAAAA' },
      { text: 'Deny', callback_data: 'deny AAAAAA' },
    ],
  ];
  const message = {
    message_id: nextMessage++,
    date: 1,
    from: BOT,
    chat,
    text: 'May I?',
    reply_markup: { inline_keyboard: rows },
  };
  return {
    callback_query: { id: `press-${nextMessage}`, from: from ?? ANN, chat_instance: '1', data, message: message as Message },
  };
}

/** The commands and mentions of a text, as Telegram marks them. */
function entitiesOf(text: string): MessageEntity[] {
  const entities: MessageEntity[] = [];
  for (const { index, 0: found } of text.matchAll(/(?<![\w@/])([/@]\w+(?:@\w+)?)/g))
    entities.push({ type: found.startsWith('/') ? 'bot_command' : 'mention', offset: index, length: found.length });
  return entities;
}
