import type { Outgoing, SendResult } from '@plugboard/channel-kit';
import type { PluginState } from '@plugboard/kernel';
import type { TelegramApi } from '../api/telegram-api.js';
import { TelegramError } from '../api/telegram-error.js';
import type { Address } from '../chats/address.js';
import { Groups } from '../chats/groups.js';
import type { Pauses } from '../chats/pauses.js';
import { addressed, withFormatting } from './payload.js';

/** Sends parts of replies. Telegram cannot say whether an earlier attempt arrived (CH-1). */
export class Replies {
  readonly #api: TelegramApi;
  readonly #pauses: Pauses;
  readonly #state: PluginState;

  constructor(api: TelegramApi, pauses: Pauses, state: PluginState) {
    this.#api = api;
    this.#pauses = pauses;
    this.#state = state;
  }

  async send(message: Outgoing<Address, never>, signal: AbortSignal): Promise<SendResult<never>> {
    if (message.text.trim() === '') return { kind: 'sent' };
    const result = await this.#attempt(message, message.to, signal);
    if (typeof result !== 'number') return result;
    await this.#groupMoved(message.to.chat, result);
    const second = await this.#attempt(message, { ...message.to, chat: result }, signal);
    return typeof second === 'number' ? { kind: 'later', reason: 'the group has moved again' } : second;
  }

  /** @returns the id of the supergroup that the chat has become, if it has. */
  async #attempt(message: Outgoing<Address, never>, to: Address, signal: AbortSignal): Promise<SendResult<never> | number> {
    try {
      await this.#post(message, to, signal);
      return { kind: 'sent' };
    } catch (error) {
      if (!(error instanceof TelegramError)) throw error;
      if (error.retryAfter !== undefined) this.#pauses.begin(to.chat, error.retryAfter);
      return error.migratedTo ?? resultOf(error);
    }
  }

  async #post(message: Outgoing<Address, never>, to: Address, signal: AbortSignal): Promise<void> {
    const { text, index, buttons, replyTo } = message;
    const payload = {
      ...addressed(to),
      // Telegram would fetch an address that the model wrote, and tell its owner what is in it.
      link_preview_options: { is_disabled: true },
      // In a group, the answer names its question.
      ...(to.chat < 0 && index === 0 && replyTo !== undefined && to.chat === message.to.chat
        ? { reply_parameters: { message_id: Number(replyTo), allow_sending_without_reply: true } }
        : {}),
      ...(buttons && { reply_markup: { inline_keyboard: keyboardOf(buttons) } }),
    };
    await withFormatting(text, (body) => this.#api.call('sendMessage', { ...payload, ...body }, signal));
  }

  /** The update that says so has not come yet, or came after the question. */
  async #groupMoved(from: number, to: number): Promise<void> {
    const moved = await new Groups(this.#state).moved(from, to);
    await this.#state.apply(this.#state.changes(moved));
  }
}

/** Two buttons a row: approving and denying one call. */
function keyboardOf(buttons: NonNullable<Outgoing['buttons']>) {
  const keys = buttons.map(({ label, line }) => ({ text: label, callback_data: line }));
  return Array.from({ length: Math.ceil(keys.length / 2) }, (_, row) => keys.slice(2 * row, 2 * row + 2));
}

/** Whether a refused message can be sent later. A refused token is not the message's fault. */
function resultOf(error: TelegramError): SendResult<never> {
  const reason = error.message;
  if (error.retryAfter !== undefined) return { kind: 'later', reason, after: error.retryAfter * 1_000 };
  const isLater = error.code === undefined || error.code >= 500 || error.code === 429 || error.refusesToken;
  return { kind: isLater ? 'later' : 'never', reason };
}
