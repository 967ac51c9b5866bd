import type { GrowingAnswer, LiveAnswer } from '@plugboard/channel-kit';
import type { Clock } from '@plugboard/kernel';
import type { SlackTo } from '../receiving/arrival.js';
import { failureOf } from '../web-api/call-failure.js';
import type { WebClient } from '../web-api/web-client.js';
import type { Kept } from './content.js';
import { MIN_PART, markdownOf, splitMarkdown } from './split.js';

/** Slack ends a stream after about 5 minutes. Milliseconds. */
const MAX_AGE = 4 * 60_000;
/** The beginning of what may become a mention that `markdownOf` changes. */
const UNFINISHED = /<!?\w*$/;

interface StreamDependencies {
  readonly clock: Clock;
  client(signal: AbortSignal): Promise<WebClient>;
  /** The person has pressed the stop button of the stream. */
  stopped(ts: string): Promise<void>;
}

/**
 * An answer that grows in a thread, as a stream of Slack.
 *
 * 1. That it begins is kept before Slack is asked, its message after: a crash in between leaves a
 *    message that `Delivery` finds and repairs.
 * 2. Only what the first message of the answer will have is streamed.
 * 3. After 4 minutes, or if a call gets no answer, nothing more is appended.
 * 4. `Delivery` ends the stream with the rest of the text, or replaces the message.
 */
export class StreamedAnswer implements LiveAnswer {
  readonly every = 1_000;
  readonly #answer: GrowingAnswer<SlackTo, Kept>;
  readonly #dependencies: StreamDependencies;
  #kept: Kept | undefined;
  #shown = '';
  #isWhole = true;
  #isRefused = false;

  constructor(answer: GrowingAnswer<SlackTo, Kept>, dependencies: StreamDependencies) {
    this.#answer = answer;
    this.#dependencies = dependencies;
  }

  /** The message that is streamed. */
  get ts(): string | undefined {
    return this.#kept?.ts;
  }

  /** Whether Slack has refused to begin it: there is no message. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** What a text has after what is shown; undefined if the stream cannot take it any more. */
  restOf(text: string): string | undefined {
    return this.#isWhole && !this.#isOld() && text.startsWith(this.#shown) ? text.slice(this.#shown.length) : undefined;
  }

  async show(text: string, signal: AbortSignal): Promise<number | undefined> {
    const next = beginningOf(text);
    const rest = this.restOf(next);
    if (rest === undefined || rest === '') return undefined;
    try {
      const client = await this.#dependencies.client(signal);
      if (this.ts === undefined) await this.#start(client, rest);
      else await client.chat.appendStream({ channel: this.#answer.to.channel, ts: this.ts, markdown_text: rest });
      this.#shown = next;
      return undefined;
    } catch (error) {
      return this.#failed(error);
    }
  }

  async end(): Promise<void> {}

  async #start(client: WebClient, text: string): Promise<void> {
    const { channel, thread, user, team } = this.#answer.to;
    const { clock } = this.#dependencies;
    if (this.#kept === undefined) await this.#keep({ startedAt: clock.now() });
    const recipients = { recipient_team_id: team, recipient_user_id: user };
    const { ts } = await client.chat.startStream({ channel, thread_ts: String(thread), markdown_text: text, ...recipients });
    await this.#keep({ startedAt: clock.now(), ...(ts === undefined ? {} : { ts }) });
  }

  async #keep(kept: Kept): Promise<void> {
    this.#kept = kept;
    await this.#answer.keep(kept);
  }

  /** A wait changes nothing. After anything else it is not known what the message has. */
  async #failed(error: unknown): Promise<number> {
    const { kind, code, after } = failureOf(error);
    if (kind === 'limited' && after !== undefined) return after;
    this.#isWhole = false;
    this.#isRefused = kind === 'refused' && this.ts === undefined;
    if (code === 'stopped_by_user' && this.ts !== undefined) await this.#dependencies.stopped(this.ts);
    throw error;
  }

  #isOld(): boolean {
    return this.#kept !== undefined && this.#dependencies.clock.now() - this.#kept.startedAt >= MAX_AGE;
  }
}

/** What of a text that may go on is certain to begin its first message. */
function beginningOf(text: string): string {
  const [first = ''] = splitMarkdown(markdownOf(text));
  return first.slice(0, MIN_PART).replace(UNFINISHED, '').trimEnd();
}
