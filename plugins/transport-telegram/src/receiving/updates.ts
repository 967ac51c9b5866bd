import type { ChannelInbox } from '@plugboard/channel-kit';
import type { Clock, Logger, PluginState } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import type { Update } from 'grammy/types';
import type { BotAccount } from '../api/bot-account.js';
import type { Address } from '../chats/address.js';
import { Groups } from '../chats/groups.js';
import type { RunningDrafts } from '../chats/running-drafts.js';
import { Albums } from './albums.js';
import type { ImageReference } from './attachments.js';
import { incomingMessage, incomingPress, type TelegramMessage } from './incoming-message.js';
import type { Presses } from './presses.js';

/** The updates that are asked for. Edits, posts of channels and the rest are not. */
export const WANTED = ['message', 'callback_query', 'stopped_message_generation'] as const;

export type TelegramInbox = ChannelInbox<Address, ImageReference>;

interface UpdatesDependencies {
  readonly state: PluginState;
  readonly clock: Clock;
  readonly log: Logger;
  readonly drafts: RunningDrafts;
  readonly presses: Presses;
}

/** One call of `run` of the platform. */
interface Running {
  readonly inbox: TelegramInbox;
  readonly bot: BotAccount;
  readonly signal: AbortSignal;
}

/** What one transaction takes. */
interface Batch {
  readonly messages: TelegramMessage[];
  readonly changes: Record<string, unknown>;
  /** Albums that are among the messages. */
  readonly albums: Set<string>;
  /** Presses, by their place among the messages. */
  readonly presses: Map<number, Update>;
}

/** Takes updates one batch after the other, and hands in what they say. */
export class Updates {
  readonly #deps: UpdatesDependencies;
  readonly #albums: Albums;
  readonly #groups: Groups;
  #last: Promise<unknown> = Promise.resolve();
  #running: Running | undefined;

  constructor(deps: UpdatesDependencies) {
    this.#deps = deps;
    this.#albums = new Albums(deps.state, deps.clock, (id) => void this.#completed(id));
    this.#groups = new Groups(deps.state);
  }

  /** Takes updates from now on, until the signal aborts. First, the albums of an earlier life. */
  async begin(inbox: TelegramInbox, bot: BotAccount, signal: AbortSignal): Promise<void> {
    this.#albums.stop();
    this.#running = { inbox, bot, signal };
    signal.addEventListener('abort', () => this.#end(), { once: true });
    if (signal.aborted) return this.#end();
    const batch = newBatch();
    for (const id of await this.#albums.load()) this.#addAlbum(id, batch);
    await this.#inTurn(() => this.#store(batch));
  }

  /**
   * Resolves once everything in the updates is durable, together with `changes`.
   * @throws TurnError `draining` before the bot is known, and when the entry stops; Error if the
   *   store fails. The updates are delivered again then.
   */
  take(updates: readonly Update[], changes: Readonly<Record<string, unknown>> = {}): Promise<void> {
    return this.#inTurn(async () => {
      const batch = newBatch();
      for (const update of updates) {
        try {
          await this.#read(update, batch);
        } catch (err) {
          // One update that nobody can read must not hold up the others for good.
          if (!(err instanceof TypeError)) throw err;
          this.#deps.log.warn({ err, update: update.update_id }, 'an update of Telegram is malformed, and is left out');
        }
      }
      Object.assign(batch.changes, changes);
      await this.#store(batch);
    });
  }

  #end(): void {
    this.#running = undefined;
    this.#albums.stop();
  }

  async #read(update: Update, batch: Batch): Promise<void> {
    const bot = this.#open().bot;
    const { message, callback_query, stopped_message_generation: stopped } = update;
    if (stopped) return this.#readStop(update.update_id, stopped, batch);
    if (message?.migrate_to_chat_id !== undefined) {
      const moved = await this.#groups.moved(message.chat.id, message.migrate_to_chat_id, batch.changes);
      return void Object.assign(batch.changes, moved);
    }
    const incoming = callback_query ? incomingPress(update, bot) : incomingMessage(update, bot);
    if (incoming === undefined) return;
    const first = await this.#groups.firstId(incoming.to.chat, batch.changes);
    const inFirstChat = { ...incoming, chat: String(first) };
    const album = callback_query === undefined ? albumOf(message?.media_group_id) : undefined;
    for (const open of this.#albums.openIn(inFirstChat.chat, album)) this.#addAlbum(open, batch);
    if (album !== undefined) return void Object.assign(batch.changes, this.#albums.add(album, update.update_id, inFirstChat));
    if (callback_query) batch.presses.set(batch.messages.length, update);
    batch.messages.push(inFirstChat);
  }

  /** The stop button of a draft. The draft of an answer that has ended stops nothing. */
  #readStop(id: number, { chat, draft_id }: NonNullable<Update['stopped_message_generation']>, batch: Batch): void {
    const answer = this.#deps.drafts.find(chat.id, draft_id);
    if (!answer) return;
    const { to } = answer;
    batch.messages.push({
      ids: [`${this.#open().bot.id}/update/${id}`],
      chat: answer.chat,
      thread: to.thread === undefined ? undefined : String(to.thread),
      to,
      sender: { id: String(chat.id), name: chat.first_name },
      text: '',
      isPrivate: true,
      isAddressed: true,
      stops: answer.id,
    });
  }

  #addAlbum(id: string, batch: Batch): void {
    const whole = batch.albums.has(id) ? undefined : this.#albums.whole(id);
    if (!whole) return;
    batch.albums.add(id);
    batch.messages.push(whole.message);
    Object.assign(batch.changes, whole.changes);
  }

  async #completed(id: string): Promise<void> {
    try {
      await this.#inTurn(async () => {
        const batch = newBatch();
        this.#addAlbum(id, batch);
        await this.#store(batch);
      });
    } catch (err) {
      this.#deps.log.warn({ err }, 'the store failed while an album was taken; it is tried again');
      this.#albums.retry(id);
    }
  }

  async #store({ messages, changes, albums, presses }: Batch): Promise<void> {
    if (messages.length === 0 && Object.keys(changes).length === 0) return;
    const { inbox, signal } = this.#open();
    const receipts = await inbox.receive(messages, changes);
    for (const id of albums) this.#albums.close(id);
    for (const [at, update] of presses) this.#deps.presses.acknowledge(update, receipts[at], signal);
  }

  #open(): Running {
    if (!this.#running) throw new TurnError('draining', 'The channel does not run.', { retryAfter: 1 });
    return this.#running;
  }

  /** Runs one after the other. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#last.then(run);
    this.#last = result.catch(() => {});
    return result;
  }
}

function newBatch(): Batch {
  return { messages: [], changes: {}, albums: new Set(), presses: new Map() };
}

/** An id that can be part of a key. */
function albumOf(group: string | undefined): string | undefined {
  return group !== undefined && /^\w{1,64}$/.test(group) ? group : undefined;
}
