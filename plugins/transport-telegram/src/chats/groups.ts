import type { PluginState } from '@plugboard/kernel';

/** Ids of supergroups are below this number. Only they have been something else before. */
const SUPERGROUPS = -1_000_000_000_000;

/**
 * The groups that have become supergroups. Telegram gives these another id; sessions and settings
 * stay with the first one (TG-8).
 */
export class Groups {
  readonly #state: PluginState;

  constructor(state: PluginState) {
    this.#state = state;
  }

  /** The id that the chat had first. @param changes that are not stored yet. */
  async firstId(chat: number, changes: Readonly<Record<string, unknown>> = {}): Promise<number> {
    if (chat > SUPERGROUPS) return chat;
    const first = changes[keyOf(chat)] ?? (await this.#state.get(keyOf(chat)));
    return typeof first === 'number' ? first : chat;
  }

  /** What to store when a group has become a supergroup. */
  async moved(from: number, to: number, changes: Readonly<Record<string, unknown>> = {}): Promise<Record<string, number>> {
    return { [keyOf(to)]: await this.firstId(from, changes) };
  }
}

function keyOf(chat: number): string {
  return `moved/${chat}`;
}
