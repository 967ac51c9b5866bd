import type { Clock, PluginState } from '@plugboard/kernel';
import type { TelegramMessage } from './incoming-message.js';

/** Milliseconds after the last part of an album until it is complete. */
const SETTLES = 1_000;
const PREFIX = 'album/';

interface Album {
  readonly chat: string;
  /** By the number of the update, padded: in their order. */
  readonly parts: Map<string, TelegramMessage>;
  timer?: { cancel(): void };
}

/**
 * The photos of an album, which Telegram sends one by one. Each is stored when it comes; the album
 * is handed in as one message when no part has come for a second, or when something else comes from
 * its chat. What a crash left is handed in at the next start.
 */
export class Albums {
  readonly #state: PluginState;
  readonly #clock: Clock;
  readonly #albums = new Map<string, Album>();
  readonly #onComplete: (id: string) => void;

  /** @param onComplete called when an album is complete. */
  constructor(state: PluginState, clock: Clock, onComplete: (id: string) => void) {
    this.#state = state;
    this.#clock = clock;
    this.#onComplete = onComplete;
  }

  /** Reads what an earlier life left. @returns the ids of the albums, which are complete. */
  async load(): Promise<readonly string[]> {
    for (const { key, value } of await this.#state.list(PREFIX)) {
      const [, id = '', part = ''] = key.split('/');
      this.#albumOf(id, (value as TelegramMessage).chat).parts.set(part, value as TelegramMessage);
    }
    return [...this.#albums.keys()];
  }

  /** Adds a part. @returns what to store. */
  add(id: string, update: number, part: TelegramMessage): Readonly<Record<string, unknown>> {
    const album = this.#albumOf(id, part.chat);
    album.parts.set(partOf(update), part);
    this.#wait(id, album);
    return { [`${PREFIX}${id}/${partOf(update)}`]: part };
  }

  /** The albums of a chat that a message of the chat completes. */
  openIn(chat: string, except?: string): readonly string[] {
    return [...this.#albums].filter(([id, album]) => album.chat === chat && id !== except).map(([id]) => id);
  }

  /** An album as one message, and what to store with it. Undefined if there is none. */
  whole(id: string): { readonly message: TelegramMessage; readonly changes: Readonly<Record<string, undefined>> } | undefined {
    const album = this.#albums.get(id);
    if (!album) return undefined;
    const parts = [...album.parts].toSorted(([a], [b]) => (a < b ? -1 : 1));
    const changes = Object.fromEntries(parts.map(([part]) => [`${PREFIX}${id}/${part}`, undefined]));
    return { message: merge(parts.map(([, message]) => message)), changes };
  }

  /** An album was stored as a message. */
  close(id: string): void {
    this.#albums.get(id)?.timer?.cancel();
    this.#albums.delete(id);
  }

  /** The store failed: an album is complete again after a second. */
  retry(id: string): void {
    const album = this.#albums.get(id);
    if (album) this.#wait(id, album);
  }

  /** Stops waiting. What is open stays stored. */
  stop(): void {
    for (const { timer } of this.#albums.values()) timer?.cancel();
    this.#albums.clear();
  }

  #albumOf(id: string, chat: string): Album {
    const album = this.#albums.get(id) ?? { chat, parts: new Map() };
    this.#albums.set(id, album);
    return album;
  }

  #wait(id: string, album: Album): void {
    album.timer?.cancel();
    album.timer = this.#clock.after(SETTLES, () => this.#onComplete(id));
  }
}

function partOf(update: number): string {
  return String(update).padStart(16, '0');
}

function merge(parts: readonly TelegramMessage[]): TelegramMessage {
  const [first] = parts;
  if (first === undefined) throw new Error('an album has no part');
  return {
    ...first,
    ids: parts.flatMap(({ ids }) => ids),
    text: parts.flatMap(({ text }) => (text === '' ? [] : [text])).join('\n\n'),
    quoted: parts.find(({ quoted }) => quoted !== undefined)?.quoted,
    images: parts.flatMap(({ images = [] }) => images),
    isAddressed: parts.some(({ isAddressed }) => isAddressed),
    unsupported: parts.find(({ unsupported }) => unsupported !== undefined)?.unsupported,
  };
}
