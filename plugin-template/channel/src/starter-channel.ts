import { AgentRuntimes, type Extensions, type Message, type PluginContext, type Principal } from '@plugboard/kernel';
import { type AgentRuntime, DEFAULT_PROJECT, type Failure, type TurnEvents, textOf } from '@plugboard/kernel/contracts';
import type { StarterConfig } from './config.ts';
import { type Incoming, Platform, type Reply } from './platform.ts';

/** Milliseconds. */
const RETRY_AFTER = 5_000;
/** The longest text that the platform takes, in characters. */
const MAX_TEXT = 4_000;
/** The message that ends the answer of its chat, and drops what waits there. */
const STOP = '/stop';

/** How far the channel has come. One value in `ctx.state`, so that all of it changes together. */
interface Progress {
  /** The last message that was answered. */
  readonly offset: number;
  /** The answer to it, until the platform has taken it. */
  readonly reply?: Reply;
}

/**
 * Answers the messages of a platform, one after the other.
 *
 * 1. The turn of a message is committed in one transaction with the offset and the reply. So a
 *    message is answered exactly once, also if the process is killed.
 * 2. The reply is sent until the platform takes or refuses it. After a crash it may be sent again;
 *    its id tells the platform that it has it.
 * 3. A turn that a stop of the server cuts short leaves no trace, and the message is answered after
 *    the next start.
 * 4. While a turn runs, the channel looks ahead: `/stop` in its chat overtakes what waits.
 */
export class StarterChannel {
  readonly #ctx: PluginContext<StarterConfig>;
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #state: PluginContext['state'];
  readonly #platform: Platform;
  readonly #stopping = new AbortController();
  /** Aborted when the entry, or the server, stops: from then on no message is taken. */
  readonly #signal: AbortSignal;
  #polling: Promise<void> | undefined;
  #turn: TurnEvents | undefined;
  /** The ids of the messages that stopped a turn, by chat, until they are answered themselves. */
  readonly #stops = new Map<string, number>();
  #wasCut = false;

  /** Created by `register`: it declares what the channel reads, and opens nothing. */
  constructor(ctx: PluginContext<StarterConfig>) {
    this.#ctx = ctx;
    this.#runtimes = ctx.extensions(AgentRuntimes);
    this.#state = ctx.state;
    this.#platform = new Platform(ctx.config.url, ctx.config.token);
    this.#signal = AbortSignal.any([this.#stopping.signal, ctx.host.stopRequested]);
  }

  start(): void {
    this.#polling = this.#poll();
  }

  /** Takes no more messages, and lets a running turn end until `signal` is aborted. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopping.abort();
    const cut = () => {
      this.#wasCut = this.#turn !== undefined;
      void this.#turn?.cancel();
    };
    if (signal.aborted) cut();
    signal.addEventListener('abort', cut, { once: true });
    await this.#polling;
    signal.removeEventListener('abort', cut);
    if (this.#wasCut) throw new Error('1 answer was cut; the message is answered after the next start');
  }

  /** Never rejects: an error that nobody catches would stop the whole server. */
  async #poll(): Promise<void> {
    const signal = this.#signal;
    while (!signal.aborted) {
      try {
        await this.#step(signal);
      } catch (err) {
        if (signal.aborted) return;
        this.#ctx.log.warn({ err }, `the channel failed; it tries again in ${RETRY_AFTER / 1000} s`);
        await this.#pause(signal);
      }
    }
  }

  /** Sends the reply that waits, or answers the next message. */
  async #step(signal: AbortSignal): Promise<void> {
    const { offset, reply } = ((await this.#state.get('progress')) ?? { offset: 0 }) as Progress;
    if (reply) {
      const isTaken = await this.#platform.send(reply);
      if (!isTaken) this.#ctx.log.error({ chat: reply.chat, message: reply.id }, 'the platform refuses a reply: it is lost');
      await this.#state.put('progress', { offset });
      return;
    }
    const message = await this.#platform.next(offset, signal);
    if (message === undefined || signal.aborted) return;
    const stop = this.#stops.get(message.chat);
    if (stop !== undefined && message.id < stop) return this.#state.put('progress', { offset: message.id });
    if (!isStop(message)) return this.#answer(message);
    await this.#state.put('progress', progressOf(message, stop === message.id ? 'Stopped.' : 'Nothing is running.'));
    this.#stops.delete(message.chat);
  }

  async #answer(message: Incoming): Promise<void> {
    const { ids, config, name } = this.#ctx;
    const runtime = this.#runtimes.one();
    const principal = this.#principal(message);
    const resolved = runtime.resolve(config.agent, principal);
    if (resolved.kind !== 'target') throw new Error(`the agent "${config.agent}" is ${resolved.kind}`);
    this.#turn = runtime.run({
      target: resolved.target,
      principal,
      messages: [{ role: 'user', content: message.text }],
      session: { key: `${name}:${message.chat}` },
      commitState: (answer) => this.#state.changes({ progress: progressOf(message, lastText(answer)) }),
      clientTools: [],
      params: {},
      incremental: false,
      requestId: `req_${ids.base62(20)}`,
      metadata: {},
      signal: new AbortController().signal,
    });
    const ended = new AbortController();
    const watching = this.#watchForStop(message, this.#turn, AbortSignal.any([ended.signal, this.#signal]));
    try {
      const failed = await failureOf(this.#turn);
      if (failed === undefined) return void this.#stops.delete(message.chat); // it was too late to stop it
      if (this.#stops.has(message.chat)) return await this.#state.put('progress', { offset: message.id });
      if (this.#signal.aborted) return;
      this.#ctx.log.warn({ code: failed.code, message: message.id }, 'a turn failed');
      await this.#state.put('progress', progressOf(message, failed.message));
    } finally {
      this.#turn = undefined;
      ended.abort();
      await watching;
    }
  }

  /** Cancels a turn when its chat says so. Takes no message: each is answered in its order. */
  async #watchForStop({ id, chat }: Incoming, turn: TurnEvents, signal: AbortSignal): Promise<void> {
    for (let offset = id; !signal.aborted; ) {
      try {
        const next = await this.#platform.next(offset, signal);
        offset = next?.id ?? offset;
        if (next?.chat !== chat || !isStop(next)) continue;
        this.#stops.set(chat, next.id);
        return void turn.cancel();
      } catch {
        await this.#pause(signal); // the platform failed, or the turn has ended
      }
    }
  }

  /** The sender is the caller: tools see it, and limits count it. */
  #principal({ sender }: Incoming): Principal {
    const { entry } = this.#ctx;
    return { project: DEFAULT_PROJECT, token: entry, tokenId: `${entry}:${sender}`, scopes: ['chat'] };
  }

  #pause(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const timer = this.#ctx.clock.after(RETRY_AFTER, resolve);
      const end = () => {
        timer.cancel();
        resolve();
      };
      signal.addEventListener('abort', end, { once: true });
    });
  }
}

function isStop({ text }: Incoming): boolean {
  return text.trim() === STOP;
}

function progressOf({ id, chat }: Incoming, text: string): Progress {
  return { offset: id, reply: { id, chat, text: text.slice(0, MAX_TEXT) } };
}

/** Waits for the end of a turn. @returns why it failed, or undefined. */
async function failureOf(turn: TurnEvents): Promise<Failure | undefined> {
  for await (const batch of turn) {
    for (const event of batch) if (event.type === 'failed') return event.failure;
  }
  return undefined;
}

/** The text after the last tool result. It may end with a request for a person's approval. */
function lastText(answer: readonly Message[]): string {
  const from = answer.findLastIndex(({ role }) => role !== 'assistant') + 1;
  const texts = answer.slice(from).map(({ content }) => textOf(content ?? ''));
  return texts.filter((text) => text !== '').join('\n\n');
}
