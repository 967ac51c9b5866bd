import type { Message, MessageEntity } from 'grammy/types';
import type { BotAccount } from '../api/bot-account.js';

/** Commands that a group may call without the name of the bot. */
const COMMANDS = new Set(['/new', '/stop', '/agent', '/help', '/start']);

/** What a message says, and whether it says it to the bot. */
interface ReadText {
  /** Without a mention of the bot at its beginning, and without `@name` of a command. */
  readonly text: string;
  readonly isAddressed: boolean;
}

export function readText({ text, caption, entities, caption_entities }: Message, bot: BotAccount): ReadText {
  const whole = text ?? caption ?? '';
  const marks = entities ?? caption_entities ?? [];
  const own = marks.filter((entity) => mentions(whole, entity, bot));
  const command = marks.find(({ type, offset }) => type === 'bot_command' && offset === 0);
  if (command) return readCommand(whole, command, bot, own.length > 0);
  const [first] = own;
  if (first?.offset !== 0) return { text: whole, isAddressed: own.length > 0 };
  const rest = whole.slice(first.length).replace(/^[\s,:]+/, '');
  // A mention and nothing else calls the agent, too.
  return { text: rest === '' ? whole : rest, isAddressed: true };
}

function readCommand(whole: string, { length }: MessageEntity, bot: BotAccount, isMentioned: boolean): ReadText {
  const [name = '', target] = whole.slice(0, length).split('@');
  if (target === undefined) return { text: whole, isAddressed: isMentioned || COMMANDS.has(name.toLowerCase()) };
  if (!isSameName(target, bot.username)) return { text: whole, isAddressed: isMentioned };
  return { text: `${name}${whole.slice(length)}`, isAddressed: true };
}

function mentions(whole: string, entity: MessageEntity, bot: BotAccount): boolean {
  if (entity.type === 'text_mention') return entity.user.id === bot.id;
  return entity.type === 'mention' && isSameName(whole.slice(entity.offset + 1, entity.offset + entity.length), bot.username);
}

function isSameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
