import type { GrowingAnswer, LiveAnswer } from '@plugboard/channel-kit';
import type { Clock } from '@plugboard/kernel';
import type { SlackTo } from '../base/slack.js';
import { failureOf } from '../web-api/call-failure.js';
import type { WebClient } from '../web-api/web-client.js';
import type { Kept } from './content.js';
import { MAX_TEXT, MIN_PART, markdownOf, splitMarkdown } from './split.js';

/** Slack ends a stream after about 5 minutes. Milliseconds. */
const MAX_AGE = 4 * 60_000;
/** The beginning of what may become a mention that `markdownOf` changes. */
const UNFINISHED = /<!?\w*$/;

interface StreamDependencies {
  /** The least milliseconds between two calls. */
  readonly every: number;
  readonly clock: Clock;
  client(signal: AbortSignal): Promise<WebClient>;
  /** There may be a message from now on: a reply will end it. */
  begun(stream: StreamedAnswer): void;
  /** The person has pressed the stop button of the stream. */
  stopped(ts: string): Promise<void>;
}

/**
 * An answer that grows in a thread, as a stream of Slack.
 *
 * 1. That it begins is kept before Slack is asked, its message after: a crash in between leaves a
 *    message that `Delivery` finds and repairs.
 * 2. Only what the first message of the answer will have is streamed. What was said before a tool
 *    ran stays above, until `Delivery` replaces the message by the answer.
 * 3. After 4 minutes, or if a call gets no answer, nothing more is appended.
 * 4. `Delivery` ends the stream with the rest of the text, or replaces the message.
 */
export class StreamedAnswer implements LiveAnswer {
  readonly every: number;
  readonly #answer: GrowingAnswer<SlackTo, Kept>;
  readonly #dependencies: StreamDependencies;
  #kept: Kept | undefined;
  /** What of the current text is shown, and how many characters the message has. */
  #shown = '';
  #length = 0;
  /** Whether the message has what is shown and nothing else. */
  #isExact = true;
  #isRefused = false;

  constructor(answer: GrowingAnswer<SlackTo, Kept>, dependencies: StreamDependencies) {
    this.every = dependencies.every;
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

  /** What a text has after what is shown; undefined if the stream cannot become that text. */
  restOf(text: string): string | undefined {
    return this.#isExact && !this.#isOld() && text.startsWith(this.#shown) ? text.slice(this.#shown.length) : undefined;
  }

  /** The signal is not passed on: a call that is cut leaves it open what the message has. */
  async show(text: string): Promise<number | undefined> {
    const next = beginningOf(text);
    const isAnew = !next.startsWith(this.#shown);
    const added = isAnew ? `\n\n${next}` : next.slice(this.#shown.length);
    if (next === '' || added === '' || this.#isOld() || this.#length + added.length > MAX_TEXT) return undefined;
    const wasExact = this.#isExact && !isAnew;
    this.#isExact = false; // while the call runs
    try {
      await this.#append(added);
    } catch (error) {
      return this.#failed(error, wasExact);
    }
    this.#isExact = wasExact;
    this.#shown = next;
    this.#length += added.length;
    return undefined;
  }

  async end(): Promise<void> {}

  async #append(text: string): Promise<void> {
    const { channel, thread, user, team } = this.#answer.to;
    const { clock } = this.#dependencies;
    const client = await this.#dependencies.client(new AbortController().signal);
    if (this.ts !== undefined) return void (await client.chat.appendStream({ channel, ts: this.ts, markdown_text: text }));
    if (this.#kept === undefined) await this.#keep({ startedAt: clock.now() });
    this.#dependencies.begun(this);
    const recipients = { recipient_team_id: team, recipient_user_id: user };
    const { ts } = await client.chat.startStream({ channel, thread_ts: String(thread), markdown_text: text, ...recipients });
    await this.#keep({ startedAt: clock.now(), ...(ts === undefined ? {} : { ts }) });
  }

  async #keep(kept: Kept): Promise<void> {
    this.#kept = kept;
    await this.#answer.keep(kept);
  }

  /** A wait changes nothing. After anything else it is not known what the message has. */
  async #failed(error: unknown, wasExact: boolean): Promise<number> {
    const { kind, code, after } = failureOf(error);
    if (kind === 'limited' && after !== undefined) {
      this.#isExact = wasExact;
      return after;
    }
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
