import type { Receipt } from '@plugboard/channel-kit';
import type { Logger } from '@plugboard/kernel';
import type { Update } from 'grammy/types';
import type { TelegramApi } from '../api/telegram-api.js';
import type { Pauses } from '../chats/pauses.js';

/** Presses that are acknowledged at the same time. Those beyond keep their sign of waiting. */
const MAX_AT_ONCE = 50;

/**
 * Ends the sign of waiting on buttons. In a private chat it takes away those that were pressed; in
 * a group every edit would count against its 20 messages a minute.
 */
export class Presses {
  readonly #api: TelegramApi;
  readonly #pauses: Pauses;
  readonly #log: Logger;
  readonly #running = new Set<Promise<void>>();

  constructor(api: TelegramApi, pauses: Pauses, log: Logger) {
    this.#api = api;
    this.#pauses = pauses;
    this.#log = log;
  }

  /** Does not wait for Telegram. The signal aborts when the entry stops. */
  acknowledge({ callback_query: press }: Update, receipt: Receipt | undefined, signal: AbortSignal): void {
    if (!press || this.#running.size >= MAX_AT_ONCE) return;
    const wasTaken = receipt === 'taken' || receipt === 'known';
    const running = this.#run(press, wasTaken, signal)
      .catch((err) => this.#log.debug({ err }, 'a button could not be acknowledged'))
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #run(press: NonNullable<Update['callback_query']>, wasTaken: boolean, signal: AbortSignal): Promise<void> {
    const { id, data, message } = press;
    await this.#api.call('answerCallbackQuery', { callback_query_id: id }, signal);
    const rows = message?.reply_markup?.inline_keyboard;
    if (!wasTaken || !message || !rows || message.chat.id < 0 || this.#pauses.isPaused(message.chat.id)) return;
    const isAboutAll = data?.includes(' all ');
    const left = rows.filter((row) => !isAboutAll && !row.some((key) => 'callback_data' in key && key.callback_data === data));
    const { chat, message_id } = message;
    const reply_markup = { inline_keyboard: left };
    await this.#api.call('editMessageReplyMarkup', { chat_id: chat.id, message_id, reply_markup }, signal);
  }
}
