import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import { HttpError, type HttpRequest, type HttpRoute } from '@plugboard/transport-http';
import type { Update } from 'grammy/types';
import type { BotAccount } from '../api/bot-account.js';
import type { TelegramApi } from '../api/telegram-api.js';
import { TelegramError } from '../api/telegram-error.js';
import { pause } from '../base/pause.js';
import { reasonOf } from './polling.js';
import { type TelegramInbox, type Updates, WANTED } from './updates.js';

const SECRET_HEADER = 'x-telegram-bot-api-secret-token';
/** Milliseconds between two looks at the webhook that is set. */
const LOOKS = 60_000;

interface WebhookDependencies {
  readonly api: TelegramApi;
  readonly clock: Clock;
  readonly updates: Updates;
  readonly config: { readonly webhookSecret?: string | undefined; readonly webhookUrl?: string | undefined };
}

/** Receives updates by HTTP. Nothing polls (TG-10). */
export class Webhook {
  readonly #deps: WebhookDependencies;

  constructor(deps: WebhookDependencies) {
    this.#deps = deps;
  }

  /** `POST /channels/<entry>`. Telegram delivers an update again unless the answer is 200. */
  route(entry: string): HttpRoute {
    return {
      method: 'POST',
      path: `/channels/${encodeURIComponent(entry)}`,
      access: 'public',
      body: 'json',
      startsWork: true,
      handle: (request) => this.#handle(request, entry),
    };
  }

  /** Sets the webhook, and looks now and then whether it is still set. @throws TelegramError */
  async run(inbox: TelegramInbox, bot: BotAccount, signal: AbortSignal): Promise<void> {
    const { api, clock, config } = this.#deps;
    const { webhookUrl: url, webhookSecret: secret_token } = config;
    if (url !== undefined && secret_token !== undefined)
      await api.call('setWebhook', { url, secret_token, allowed_updates: WANTED }, signal);
    while (!signal.aborted) {
      const fault = await this.#fault(signal);
      if (signal.aborted) return;
      if (fault === undefined) inbox.connected(`@${bot.username}`);
      else inbox.failed(fault);
      await pause(clock, LOOKS, signal);
    }
  }

  /** Why no updates arrive, if none do. */
  async #fault(signal: AbortSignal): Promise<string | undefined> {
    const { api, config } = this.#deps;
    try {
      const { url = '' } = await api.call('getWebhookInfo', {}, signal);
      if (url === '') return 'no webhook is set for this bot; set `webhookUrl`, or call setWebhook';
      if (config.webhookUrl === undefined || config.webhookUrl === url) return undefined;
      return 'another webhook was set for this bot; a restart of the entry sets `webhookUrl` again';
    } catch (error) {
      if (error instanceof TelegramError) return reasonOf(error);
      throw error;
    }
  }

  async #handle(request: HttpRequest, entry: string): Promise<{ readonly status: number; readonly body: object }> {
    const { updates, config } = this.#deps;
    if (!isSecret(request.headers[SECRET_HEADER], config.webhookSecret))
      throw new HttpError(401, `The header ${SECRET_HEADER} is not the secret of this webhook.`, { code: 'unauthorized' });
    request.note({ token_name: entry });
    const update = request.body as Update;
    if (!Number.isSafeInteger(update.update_id)) throw new HttpError(400, 'The body is not an update of Telegram.');
    try {
      await updates.take([update]);
    } catch (error) {
      if (error instanceof TurnError) throw new HttpError(503, error.message, { code: error.code });
      request.note({ not_stored: String(error) });
      throw new HttpError(503, 'The update could not be stored.', { code: 'unavailable' });
    }
    return { status: 200, body: {} };
  }
}

function isSecret(given: unknown, secret: string | undefined): boolean {
  if (typeof given !== 'string' || secret === undefined) return false;
  return timingSafeEqual(digest(given), digest(secret));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
