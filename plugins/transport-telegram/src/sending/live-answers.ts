import type { GrowingAnswer, LiveAnswer } from '@plugboard/channel-kit';
import type { TelegramApi } from '../api/telegram-api.js';
import { TelegramError } from '../api/telegram-error.js';
import type { Address } from '../chats/address.js';
import type { Pauses } from '../chats/pauses.js';
import type { RunningDrafts } from '../chats/running-drafts.js';
import { messagesOf } from '../formatting/messages-of.js';
import { addressed, withFormatting } from './payload.js';

/** Milliseconds: a draft is shown once a second at most, and lives for 30 s. */
const DRAFT = { every: 1_000, renew: 20_000 };
/** Milliseconds: Telegram shows `typing` for 5 s. */
const TYPING = { every: 4_500, renew: 4_500 };
/** Milliseconds. One that comes later than the answer would stand below it. */
const LIMIT = 4_000;

/** Shows answers that grow: as drafts in private chats, as `typing` in groups (TG-4). */
export class LiveAnswers {
  readonly #api: TelegramApi;
  readonly #drafts: RunningDrafts;
  readonly #pauses: Pauses;

  constructor(api: TelegramApi, drafts: RunningDrafts, pauses: Pauses) {
    this.#api = api;
    this.#drafts = drafts;
    this.#pauses = pauses;
  }

  begin({ id, chat, to }: GrowingAnswer<Address, never>): LiveAnswer {
    if (to.chat < 0) return { ...TYPING, show: () => this.#show(to, () => this.#type(to)), end: async () => {} };
    const draft = { id, chat, to };
    const number = this.#drafts.begin(draft);
    return {
      ...DRAFT,
      show: (text) => this.#show(to, () => this.#draft(to, number, text)),
      end: async () => this.#drafts.end(draft, number),
    };
  }

  /** @returns the milliseconds for which Telegram wants nothing more. */
  async #show({ chat }: Address, send: () => Promise<unknown>): Promise<number | undefined> {
    try {
      await send();
    } catch (error) {
      if (!(error instanceof TelegramError)) throw error;
      if (error.retryAfter !== undefined) {
        this.#pauses.begin(chat, error.retryAfter);
        return error.retryAfter * 1_000;
      }
      // No answer, or 5xx: the next one may arrive. Any other refusal ends the draft.
      if (error.code !== undefined && error.code < 500) throw error;
    }
    return undefined;
  }

  /** The end of a long text is what grows. It is not cut off by the signal: it would come late. */
  async #draft(to: Address, draft_id: number, text: string): Promise<void> {
    const html = messagesOf(text).at(-1) ?? '';
    const draft = { ...addressed(to), draft_id, can_stop: true };
    await withFormatting(html, (body) => this.#api.call('sendMessageDraft', { ...draft, ...body }, NEVER, LIMIT));
  }

  async #type(to: Address): Promise<void> {
    await this.#api.call('sendChatAction', { ...addressed(to), action: 'typing' }, NEVER, LIMIT);
  }
}

const NEVER = new AbortController().signal;
