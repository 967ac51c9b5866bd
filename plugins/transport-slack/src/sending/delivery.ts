import type { Logger } from '@plugboard/kernel';
import { failureOf, isFinal } from '../web-api/call-failure.js';
import type { WebClient } from '../web-api/web-client.js';
import { buttonsOf, contentOf, isPart, metadataOf, type SlackOutgoing } from './content.js';
import type { StreamedAnswer } from './streamed-answer.js';

/** Messages of a page, and pages that are looked through for a message. */
const PAGE = 200;
const MAX_PAGES = 10;
/** Seconds that the clocks of Slack and of this machine may differ by. */
const CLOCK_SKEW = 300;

/** A message as Slack shows it. */
interface Found {
  readonly ts?: string;
  readonly user?: string;
  readonly metadata?: unknown;
}

interface Page {
  readonly messages: readonly Found[];
  /** Empty at the end. */
  readonly next: string;
}

/**
 * Brings one part of a reply to Slack.
 *
 * 1. A streamed answer is ended with the rest of its text.
 * 2. If that cannot be, one `chat.update` brings the whole. If Slack refuses that, the message is
 *    deleted, and the part is posted.
 * 3. A part that may have arrived is looked for first, by its metadata.
 */
export class Delivery {
  readonly #log: Logger;
  #saidBlind = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * @param streams the answers that are streamed now, by id.
   * @throws the error of the client if the part has not arrived, or may not have.
   */
  async send(
    message: SlackOutgoing,
    client: WebClient,
    bot: string,
    streams: ReadonlyMap<string, StreamedAnswer>,
  ): Promise<void> {
    const stream = streams.get(message.id);
    if (message.index === 0 && message.kept !== undefined && stream?.isRefused !== true) {
      const ts = message.kept.ts ?? stream?.ts ?? (await this.#unfinished(message, client, bot, streams));
      if (ts !== undefined && (await this.#complete(message, client, ts, stream))) return;
    }
    if (message.mayHaveArrived && (await this.#search(message, client, (found) => isPart(found, message)))) return;
    const { channel, thread } = message.to;
    const place = thread === undefined ? { channel } : { channel, thread_ts: thread };
    await client.chat.postMessage({ ...place, ...contentOf(message), metadata: metadataOf(message) });
  }

  /** Makes the streamed message the part. @returns false if the part must be posted instead. */
  async #complete(message: SlackOutgoing, client: WebClient, ts: string, stream: StreamedAnswer | undefined): Promise<boolean> {
    const place = { channel: message.to.channel, ts };
    const metadata = metadataOf(message);
    const rest = message.mayHaveArrived ? undefined : stream?.restOf(message.text);
    if (message.mayHaveArrived && (await this.#search(message, client, (found) => found.ts === ts && isPart(found, message))))
      return true;
    if (rest !== undefined) {
      const text = rest === '' ? {} : { markdown_text: rest };
      const blocks = message.buttons === undefined ? {} : { blocks: buttonsOf(message.buttons) };
      if (await accepted(client.chat.stopStream({ ...place, ...text, ...blocks, metadata }))) return true;
    }
    // Slack changes no message that is still streaming.
    await accepted(client.chat.stopStream(place));
    if (await accepted(client.chat.update({ ...place, ...contentOf(message), metadata }))) return true;
    await accepted(client.chat.delete(place));
    return false;
  }

  /** The message of a stream whose beginning was not acknowledged: the bot's only unnamed one. */
  async #unfinished(
    message: SlackOutgoing,
    client: WebClient,
    bot: string,
    streams: ReadonlyMap<string, StreamedAnswer>,
  ): Promise<string | undefined> {
    const { since = '' } = message.to;
    const others = new Set(streams.values().map(({ ts }) => ts));
    const isIt = ({ ts = '', user, metadata }: Found) => ts > since && user === bot && metadata === undefined && !others.has(ts);
    return (await this.#search(message, client, isIt))?.ts;
  }

  /** Looks among the messages that came after the one that is answered. */
  async #search({ to, at }: SlackOutgoing, client: WebClient, isIt: (found: Found) => boolean): Promise<Found | undefined> {
    const oldest = to.since ?? String(at / 1000 - CLOCK_SKEW);
    const place = { channel: to.channel, oldest, limit: PAGE, include_all_metadata: true };
    try {
      let cursor = '';
      for (let page = 0; page < MAX_PAGES; page++) {
        const from = cursor === '' ? place : { ...place, cursor };
        const { messages, next }: Page = await this.#page(client, from, to.thread);
        const found = messages.find((one) => isIt(one));
        if (found || next === '') return found;
        cursor = next;
      }
    } catch (error) {
      const failure = failureOf(error);
      if (!isFinal(failure)) throw error;
      if (!this.#saidBlind)
        this.#log.warn(
          { code: failure.code },
          'Slack does not show the messages of a chat: after a crash a reply may come twice. Give the app the history scopes',
        );
      this.#saidBlind = true;
    }
    return undefined;
  }

  async #page(client: WebClient, from: { channel: string }, thread: string | undefined): Promise<Page> {
    const { conversations } = client;
    const answer =
      thread === undefined ? await conversations.history(from) : await conversations.replies({ ...from, ts: thread });
    return { messages: (answer.messages ?? []) as readonly Found[], next: answer.response_metadata?.next_cursor ?? '' };
  }
}

/** Whether Slack did it. @throws what is not a refusal for good. */
async function accepted(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (isFinal(failureOf(error))) return false;
    throw error;
  }
}
