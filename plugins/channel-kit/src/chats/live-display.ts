import type { AgentEvent, Clock, Logger } from '@plugboard/kernel';
import { wait } from '../base/wait.js';
import type { LiveAnswer } from '../platform/platform.js';
import type { Pacing } from '../replies/pacing.js';

interface LiveDisplayDependencies {
  readonly clock: Clock;
  readonly pacing: Pacing;
  readonly log: Logger;
}

/** Milliseconds that the last call of `show` has when the turn has ended. */
const SETTLE = 5_000;

/** Shows the answer of one turn as it grows, as often as the platform bears it. */
export class LiveDisplay {
  readonly #answer: LiveAnswer;
  readonly #chat: string;
  readonly #deps: LiveDisplayDependencies;
  readonly #ended = new AbortController();
  readonly #showing: Promise<void>;
  #text = '';
  #changed = new AbortController();

  constructor(answer: LiveAnswer, chat: string, deps: LiveDisplayDependencies) {
    this.#answer = answer;
    this.#chat = chat;
    this.#deps = deps;
    this.#showing = this.#run();
  }

  /** The text of a step begins anew: what was said before a tool ran is no part of the reply. */
  add(events: readonly AgentEvent[]): void {
    const before = this.#text;
    for (const event of events) {
      if (event.type === 'step') this.#text = '';
      else if (event.type === 'text') this.#text += event.isNotice && this.#text !== '' ? `\n\n${event.text}` : event.text;
    }
    if (this.#text !== before && this.#text !== '') this.#changed.abort();
  }

  /** Never rejects. */
  async end(): Promise<void> {
    this.#ended.abort();
    this.#changed.abort();
    const { clock, log } = this.#deps;
    const limit = new AbortController();
    const settled = (async () => {
      await this.#showing;
      if (this.#deps.pacing.left(this.#chat) === 0) await this.#answer.end();
    })().catch((err) => log.debug({ err }, 'the end of a growing answer could not be shown'));
    await Promise.race([settled, wait(clock, SETTLE, limit.signal)]);
    limit.abort();
  }

  async #run(): Promise<void> {
    const { clock, pacing, log } = this.#deps;
    const { every, renew = Number.POSITIVE_INFINITY } = this.#answer;
    const { signal } = this.#ended;
    let shown: string | undefined;
    try {
      while (!signal.aborted) {
        const left = pacing.left(this.#chat);
        if (left > 0) {
          await wait(clock, left, signal);
          continue;
        }
        this.#changed = new AbortController();
        shown = this.#text;
        const after = await this.#answer.show(shown, signal);
        if (after !== undefined) pacing.pause(this.#chat, after);
        await wait(clock, every, signal);
        if (this.#text === shown) await this.#change(renew - every);
      }
    } catch (err) {
      if (!signal.aborted) log.debug({ err }, 'an answer is not shown while it grows: the platform refuses it');
    }
  }

  /** Waits for a change of the text, or until it is to be shown again. */
  async #change(ms: number): Promise<void> {
    const signal = AbortSignal.any([this.#changed.signal, this.#ended.signal]);
    if (Number.isFinite(ms)) return wait(this.#deps.clock, ms, signal);
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  }
}
