import type { Clock, PluginState } from '@plugboard/kernel';
import type { Update } from 'grammy/types';
import type { BotAccount } from '../api/bot-account.js';
import type { TelegramApi } from '../api/telegram-api.js';
import { TelegramError } from '../api/telegram-error.js';
import { pause } from '../base/pause.js';
import { Offset } from './offset.js';
import { type TelegramInbox, type Updates, WANTED } from './updates.js';

/** Seconds that Telegram holds a poll open. */
const HELD = 50;
/** Milliseconds after which a poll is given up (TG-3). */
const POLL_LIMIT = 90_000;
/** Milliseconds before the next poll after one that failed: then twice as long. */
const WAIT = { first: 5_000, most: 60_000 };

interface PollingDependencies {
  readonly api: TelegramApi;
  readonly state: PluginState;
  readonly clock: Clock;
  readonly updates: Updates;
}

/**
 * Polls for updates (TG-1, TG-2, TG-3).
 *
 * 1. A poll sends the offset that is stored: so it confirms only what is durable here.
 * 2. The updates that it brings are stored in one transaction, with the next offset.
 * 3. If it fails, it is tried again after 5 s, then twice as long, at most 60 s. The next poll is
 *    not held open, so that its success shows at once; but beside another poller only a poll that
 *    lasts shows that the other one has gone.
 */
export class Polling {
  readonly #deps: PollingDependencies;

  constructor(deps: PollingDependencies) {
    this.#deps = deps;
  }

  /** @throws Error if the store fails. */
  async run(inbox: TelegramInbox, bot: BotAccount, signal: AbortSignal): Promise<void> {
    const { state, clock, updates } = this.#deps;
    const offset = new Offset(bot.id, state, clock);
    await offset.load();
    let held = 0;
    for (let failures = 0; !signal.aborted; ) {
      const found = await this.#poll(offset, held, signal);
      if (signal.aborted) return;
      if (found instanceof TelegramError) {
        inbox.failed(reasonOf(found));
        held = found.isOtherPoller ? HELD : 0;
        await pause(clock, waitAfter(found, failures++), signal);
        continue;
      }
      inbox.connected(`@${bot.username}`);
      [held, failures] = [HELD, 0];
      const last = found.at(-1)?.update_id;
      if (last === undefined) continue;
      await updates.take(found, offset.changesFor(last));
      offset.moveBehind(last);
    }
  }

  async #poll(offset: Offset, timeout: number, signal: AbortSignal): Promise<readonly Update[] | TelegramError> {
    const { next } = offset;
    const payload = { timeout, limit: 100, allowed_updates: WANTED, ...(next !== undefined && { offset: next }) };
    try {
      return await this.#deps.api.call('getUpdates', payload, signal, POLL_LIMIT);
    } catch (error) {
      if (error instanceof TelegramError) return error;
      throw error;
    }
  }
}

function waitAfter({ retryAfter, isLate }: TelegramError, failures: number): number {
  if (retryAfter !== undefined) return retryAfter * 1_000;
  // It has waited for long enough.
  return isLate ? 0 : Math.min(WAIT.most, WAIT.first * 2 ** Math.min(10, failures));
}

/** The cause and the cure, for operators. */
export function reasonOf(error: TelegramError): string {
  if (error.refusesToken) return 'Telegram refuses the token; set `token` to the one that @BotFather gives for this bot';
  if (error.isOtherPoller) return 'something else polls this bot, too; stop it, or give each its own bot';
  if (error.code !== 409) return error.message;
  return 'a webhook is set for this bot, so it cannot be polled; delete it (deleteWebhook), or use `mode: webhook`';
}
