import type { GrowingAnswer, LiveAnswer, Outgoing, Platform, SendResult } from '@plugboard/channel-kit';
import type { PluginContext } from '@plugboard/kernel';
import type { HttpRoute } from '@plugboard/transport-http';
import type { BotAccount } from './api/bot-account.js';
import { TelegramApi } from './api/telegram-api.js';
import { TelegramError } from './api/telegram-error.js';
import { pause } from './base/pause.js';
import type { Address } from './chats/address.js';
import { Pauses } from './chats/pauses.js';
import { RunningDrafts } from './chats/running-drafts.js';
import type { TelegramOptions } from './config.js';
import { messagesOf } from './formatting/messages-of.js';
import type { ImageReference } from './receiving/attachments.js';
import { Polling, reasonOf } from './receiving/polling.js';
import { Presses } from './receiving/presses.js';
import { type TelegramInbox, Updates } from './receiving/updates.js';
import { Webhook } from './receiving/webhook.js';
import { LiveAnswers } from './sending/live-answers.js';
import { Replies } from './sending/replies.js';

/** Milliseconds before the bot is asked for again: then twice as long. */
const WAIT = { first: 1_000, most: 60_000 };

/** Telegram, as a platform of the kit. */
export class TelegramPlatform implements Platform<Address, never, ImageReference> {
  readonly name = 'telegram';
  readonly receivesAnywhere: boolean;
  readonly #ctx: PluginContext<TelegramOptions>;
  readonly #api: TelegramApi;
  readonly #updates: Updates;
  readonly #presses: Presses;
  readonly #webhook: Webhook;
  readonly #live: LiveAnswers;
  readonly #replies: Replies;
  #hasWarned = false;

  constructor(ctx: PluginContext<TelegramOptions>) {
    const { clock, log, state, config } = ctx;
    const api = new TelegramApi(config, clock);
    const drafts = new RunningDrafts();
    const pauses = new Pauses(clock);
    const presses = new Presses(api, pauses, log);
    const updates = new Updates({ state, clock, log, drafts, presses });
    this.receivesAnywhere = config.mode === 'webhook';
    this.#ctx = ctx;
    this.#api = api;
    this.#updates = updates;
    this.#presses = presses;
    this.#webhook = new Webhook({ api, clock, updates, config });
    this.#live = new LiveAnswers(api, drafts, pauses);
    this.#replies = new Replies(api, pauses, state);
  }

  /** The route of `mode: webhook`. */
  get route(): HttpRoute {
    return this.#webhook.route(this.#ctx.name);
  }

  async run(inbox: TelegramInbox, signal: AbortSignal): Promise<void> {
    const { clock, state, config } = this.#ctx;
    this.#warnOnce();
    const bot = await this.#findBot(inbox, signal);
    if (!bot) return;
    await this.#updates.begin(inbox, bot, signal);
    if (config.mode === 'webhook') await this.#webhook.run(inbox, bot, signal);
    else await new Polling({ api: this.#api, state, clock, updates: this.#updates }).run(inbox, bot, signal);
    await this.#presses.settled();
  }

  split(text: string): readonly string[] {
    return messagesOf(text);
  }

  send(message: Outgoing<Address, never>, signal: AbortSignal): Promise<SendResult<never>> {
    return this.#replies.send(message, signal);
  }

  live(answer: GrowingAnswer<Address, never>): LiveAnswer {
    return this.#live.begin(answer);
  }

  loadImage({ file }: ImageReference, signal: AbortSignal): Promise<Uint8Array | undefined> {
    return this.#api.download(file, signal);
  }

  #warnOnce(): void {
    const { pairing, allow } = this.#ctx.config;
    if (pairing || allow !== undefined || this.#hasWarned) return;
    this.#hasWarned = true;
    const cure = 'set `pairing: true`, or name senders in `allow`';
    this.#ctx.log.warn(`everyone who finds the bot in Telegram gets answers; ${cure}`);
  }

  /** Asks who the bot is until Telegram says so. Undefined once the signal has aborted. */
  async #findBot(inbox: TelegramInbox, signal: AbortSignal): Promise<BotAccount | undefined> {
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        return await this.#api.call('getMe', {}, signal);
      } catch (error) {
        if (!(error instanceof TelegramError)) throw error;
        if (signal.aborted) return undefined;
        inbox.failed(reasonOf(error));
        const { retryAfter } = error;
        const ms = retryAfter === undefined ? Math.min(WAIT.most, WAIT.first * 2 ** Math.min(10, failures)) : retryAfter * 1_000;
        await pause(this.#ctx.clock, ms, signal);
      }
    }
    return undefined;
  }
}
