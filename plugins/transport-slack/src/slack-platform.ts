import { once } from 'node:events';
import type { ChannelInbox, GrowingAnswer, LiveAnswer, Platform, SendResult } from '@plugboard/channel-kit';
import type { PluginContext } from '@plugboard/kernel';
import type { Account, SlackImage, SlackTo } from './base/slack.js';
import type { SlackConfig } from './config.js';
import { AnsweredThreads } from './receiving/answered-threads.js';
import type { Arrival } from './receiving/arrival.js';
import { arrivalOf } from './receiving/arrivals.js';
import { boltApp } from './receiving/bolt-app.js';
import type { HttpReceiver } from './receiving/http-receiver.js';
import { InTurn } from './receiving/in-turn.js';
import { stop } from './receiving/interactions.js';
import { Lookups } from './receiving/lookups.js';
import { SocketMode } from './receiving/socket-mode.js';
import type { Kept, SlackOutgoing } from './sending/content.js';
import { Delivery } from './sending/delivery.js';
import { markdownOf, splitMarkdown } from './sending/split.js';
import { StreamedAnswer } from './sending/streamed-answer.js';
import { sendResultOf } from './web-api/call-failure.js';
import { identify } from './web-api/identify.js';
import { loadImage } from './web-api/load-image.js';
import { clientOptions, loadBolt, type WebClient } from './web-api/web-client.js';

/** Milliseconds for what is asked before an event is acknowledged: Slack waits 3 s for that. */
const LOOKUP_TIMEOUT = 1_200;
/** Milliseconds between two calls for a stream. All streams of a workspace share a limit. */
const APPEND_EVERY = 1_000;

type Inbox = ChannelInbox<SlackTo, SlackImage>;

/**
 * Slack, as channel-kit sees it.
 *
 * 1. `run` loads Bolt, asks Slack whose token it is, and receives by Socket Mode or HTTP.
 * 2. Each delivery becomes at most one message for the kit, and is acknowledged once that is
 *    durable.
 * 3. An answer in a thread is streamed; any other is posted whole.
 */
export class SlackPlatform implements Platform<SlackTo, Kept, SlackImage> {
  readonly name = 'slack';
  readonly receivesAnywhere: boolean;
  readonly #ctx: PluginContext<SlackConfig>;
  readonly #http: HttpReceiver | undefined;
  readonly #threads: AnsweredThreads;
  readonly #delivery: Delivery;
  /** The first message makes its thread one in which the agent answers: the next one waits. */
  readonly #inTurn = new InTurn();
  #isFailing = false;
  /** The answers that are streamed, by id, until their reply is sent. */
  readonly #streams = new Map<string, StreamedAnswer>();
  #inbox: Inbox | undefined;
  #account: Account | undefined;

  /** @param http receives in place of Socket Mode. */
  constructor(ctx: PluginContext<SlackConfig>, http: HttpReceiver | undefined) {
    this.#ctx = ctx;
    this.#http = http;
    this.receivesAnywhere = http !== undefined;
    this.#threads = new AnsweredThreads(ctx.state);
    this.#delivery = new Delivery(ctx.log);
  }

  async run(inbox: Inbox, signal: AbortSignal): Promise<void> {
    this.#inbox = inbox;
    const { botToken, appToken, apiUrl } = this.#ctx.config;
    const bolt = await loadBolt();
    const client = await this.#client(signal);
    const account = await identify(client);
    this.#account = account;
    const lookups = new Lookups(await this.#client(signal, LOOKUP_TIMEOUT), account);
    const process = boltApp(bolt, botToken, async (body) => {
      const arrival = arrivalOf(body, account, (ts) => this.#answerOf(ts));
      if (arrival) await this.#deliver(laneOf(arrival), () => this.#take(arrival, inbox, account, lookups));
    });
    const connected = () => inbox.connected(`${account.name} (${account.teamName})`);
    if (this.#http === undefined) {
      const sockets = new SocketMode({ bolt, clock: this.#ctx.clock, appToken: String(appToken), apiUrl, process });
      return sockets.run(signal, connected);
    }
    this.#http.open({ bolt, process });
    connected();
    if (!signal.aborted) await once(signal, 'abort');
    this.#http.close();
  }

  split(text: string): readonly string[] {
    return splitMarkdown(markdownOf(text));
  }

  live(answer: GrowingAnswer<SlackTo, Kept>): LiveAnswer | undefined {
    // What a crash cut is replaced by the whole: it is not continued.
    if (answer.to.thread === undefined || answer.kept !== undefined) return undefined;
    return new StreamedAnswer(answer, {
      every: APPEND_EVERY * (1 + this.#streams.size),
      clock: this.#ctx.clock,
      client: (signal) => this.#client(signal),
      begun: (stream) => this.#streams.set(answer.id, stream),
      stopped: (ts) => this.#stopped(answer, ts),
    });
  }

  async send(message: SlackOutgoing, signal: AbortSignal): Promise<SendResult<Kept>> {
    try {
      const client = await this.#client(signal);
      this.#account ??= await identify(client);
      await this.#delivery.send(message, client, this.#account.user, this.#streams);
      this.#streams.delete(message.id);
      return { kind: 'sent' };
    } catch (error) {
      return sendResultOf(error);
    }
  }

  loadImage(image: SlackImage, signal: AbortSignal): Promise<Uint8Array | undefined> {
    const { apiUrl, botToken } = this.#ctx.config;
    return loadImage(image, { apiUrl, botToken, signal });
  }

  async #client(signal: AbortSignal, timeout?: number): Promise<WebClient> {
    const { webApi } = await loadBolt();
    const { botToken, apiUrl } = this.#ctx.config;
    return new webApi.WebClient(botToken, clientOptions(apiUrl, signal, timeout));
  }

  /** Takes what arrives in a thread one after the other. The first failure of a row has a line. */
  async #deliver(lane: string, take: () => Promise<void>): Promise<void> {
    try {
      await this.#inTurn.run(lane, take);
      this.#isFailing = false;
    } catch (err) {
      const isStopping = this.#ctx.host.stopRequested.aborted;
      if (!this.#isFailing && !isStopping) this.#ctx.log.warn({ err }, 'an event is not stored; Slack delivers it again');
      this.#isFailing = true;
      throw err;
    }
  }

  async #take({ incoming, team, follows, begunBy }: Arrival, inbox: Inbox, account: Account, lookups: Lookups): Promise<void> {
    const { pairing, allow } = this.#ctx.config;
    const { sender, to, thread, isPrivate } = incoming;
    const isOpen = !pairing && allow === undefined;
    // Channels may be shared with other workspaces: their people are strangers.
    const own: readonly unknown[] = [account.team, account.enterprise];
    if (isOpen && !own.includes(team ?? (await lookups.teamOf(sender.id)))) return;
    const isInThread = thread !== undefined && !isPrivate;
    const isKnown = isInThread && (follows || begunBy !== undefined) && (await this.#threads.has(to));
    const isAddressed = incoming.isAddressed || (follows && isKnown);
    const quoted = isAddressed && begunBy !== undefined && !isKnown ? await lookups.beginningOf(to) : undefined;
    const [receipt] = await inbox.receive([{ ...incoming, isAddressed, quoted }]);
    if (isInThread && (receipt === 'taken' || receipt === 'known')) await this.#threads.add(to);
  }

  #answerOf(ts: string): string | undefined {
    for (const [id, stream] of this.#streams) if (stream.ts === ts) return id;
    return undefined;
  }

  async #stopped({ id, to }: GrowingAnswer<SlackTo, Kept>, ts: string): Promise<void> {
    const { incoming } = stop(to, id, [`${this.#account?.team}/stop/${to.channel}/${ts}`]);
    await this.#inbox?.receive([incoming]);
  }
}

function laneOf({ incoming: { chat, thread } }: Arrival): string {
  return thread === undefined ? chat : `${chat}/${thread}`;
}
