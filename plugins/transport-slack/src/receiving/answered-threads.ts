import type { PluginState } from '@plugboard/kernel';
import type { SlackTo } from '../base/slack.js';

/** Milliseconds after the last message for the agent: 90 days. */
const MAX_AGE = 90 * 24 * 3_600_000;

/** The threads in which the agent answers: there every message is for it. */
export class AnsweredThreads {
  readonly #state: PluginState;

  constructor(state: PluginState) {
    this.#state = state;
  }

  async has(to: SlackTo): Promise<boolean> {
    return (await this.#state.get(keyOf(to))) !== undefined;
  }

  /** Resolves once it is durable. */
  async add(to: SlackTo): Promise<void> {
    await this.#state.put(keyOf(to), true, { expiresIn: MAX_AGE });
  }
}

function keyOf({ channel, thread }: SlackTo): string {
  return `thread/${channel}/${thread}`;
}
