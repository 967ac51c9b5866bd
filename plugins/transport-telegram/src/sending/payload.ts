import { TelegramError } from '../api/telegram-error.js';
import type { Address } from '../chats/address.js';
import { plainOf } from '../formatting/html.js';

/** The fields of a call that say where it goes. */
export function addressed({ chat, thread }: Address): { readonly chat_id: number; readonly message_thread_id?: number } {
  return { chat_id: chat, ...(thread !== undefined && { message_thread_id: thread }) };
}

/** Sends HTML. If Telegram refuses the formatting, and only then, it sends the text without it. */
export async function withFormatting<T>(
  html: string,
  send: (body: { readonly text: string; readonly parse_mode?: 'HTML' }) => Promise<T>,
): Promise<T> {
  try {
    return await send({ text: html, parse_mode: 'HTML' });
  } catch (error) {
    if (!(error instanceof TelegramError) || error.code !== 400 || !/pars|entit|url/i.test(error.description)) throw error;
    return send({ text: plainOf(html) });
  }
}
