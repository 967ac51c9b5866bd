import type { AgentEvent, Message, PluginContext } from '@plugboard/kernel';
import {
  Account,
  type AgentRuntime,
  type ContentPart,
  type Failure,
  failureOf,
  type Target,
  TurnError,
  type TurnIdempotency,
} from '@plugboard/kernel/contracts';
import { NOTICES } from '../base/notices.js';
import type { Platform } from '../platform/platform.js';
import type { Outbox, PreparedReply } from '../replies/outbox.js';
import type { Pacing } from '../replies/pacing.js';
import type { ChannelState, Values } from '../state/channel-state.js';
import { KEYS, laneOf } from '../state/keys.js';
import type { ChatSettings, StoredMessage } from '../state/records.js';
import type { ChannelAgents } from './agents.js';
import { answerText, messageText } from './answer-text.js';
import { Asks, askOf } from './approval-buttons.js';
import { imageParts, Unreadable } from './images.js';
import { LiveDisplay } from './live-display.js';
import type { QueuedMessage } from './queued-message.js';
import { sessionKey } from './session-key.js';

export interface TurnDependencies {
  readonly ctx: Pick<PluginContext, 'entry' | 'name' | 'clock' | 'ids' | 'log' | 'budgets'>;
  readonly platform: Platform;
  readonly agents: ChannelAgents;
  readonly state: ChannelState;
  readonly outbox: Outbox;
  readonly pacing: Pacing;
}

/** What became of a message. */
export type TurnOutcome =
  /** Its turn is stored, with the reply and its removal from the inbox. */
  | { readonly kind: 'done' }
  /** It is removed, and the chat receives this text in place of an answer. */
  | { readonly kind: 'tell'; readonly as: 'failed' | 'notice'; readonly text: string }
  /** It is removed, and the chat receives nothing. */
  | { readonly kind: 'drop' }
  /** It stays in the inbox, and is tried again. */
  | { readonly kind: 'again'; readonly failure: Failure }
  /** The signal has aborted. It stays in the inbox. */
  | { readonly kind: 'cut' };

/** Failures that the same message may not meet again shortly after. */
const AGAIN = new Set<Failure['code']>(['session_busy', 'overloaded', 'rate_limited', 'store_failed', 'lease_lost']);
/** Failures of a server that stops. The message runs after the next start. */
const STOPPED = new Set<Failure['code']>(['draining', 'stopped']);

/**
 * The turn of one message.
 *
 * 1. It claims the message, so that tools which had begun before a crash do not run again.
 * 2. It runs the turn in the session of the chat.
 * 3. The transaction of the turn stores the reply, and removes the message.
 */
export class MessageTurn {
  readonly #deps: TurnDependencies;
  readonly #head: QueuedMessage;
  readonly #message: StoredMessage;
  readonly #settings: ChatSettings;
  readonly #asks = new Asks();
  #kept: unknown;

  constructor(deps: TurnDependencies, head: QueuedMessage, message: StoredMessage, settings: ChatSettings) {
    this.#deps = deps;
    this.#head = head;
    this.#message = message;
    this.#settings = settings;
  }

  /**
   * Makes one attempt.
   * @param signal its reason is a `TurnError` that ends the turn.
   * @throws Error if the state cannot be read.
   */
  async run(signal: AbortSignal): Promise<TurnOutcome> {
    const { ctx, agents } = this.#deps;
    const name = agents.chosen(this.#settings.agent);
    const target = agents.find(name);
    if (!target) return { kind: 'tell', as: 'failed', text: NOTICES.noAgent(name) };
    const account = new Account(ctx.budgets.memory, agents.principal(this.#message), '', ctx.budgets.time);
    const leave = account.hold();
    try {
      if (await this.#isLatePress(account)) return { kind: 'drop' };
      return await this.#claim(target, account, signal);
    } catch (error) {
      if (signal.aborted) return { kind: 'cut' };
      if (error instanceof Unreadable) return { kind: 'tell', as: 'notice', text: error.message };
      if (error instanceof TurnError) return outcomeOf(failureOf(error, false));
      throw error;
    } finally {
      leave();
    }
  }

  /** Whether a button was pressed about what no longer waits (AP-3). */
  async #isLatePress(account: Account): Promise<boolean> {
    const { press, sender } = this.#message;
    if (press === undefined) return false;
    const id = askOf(press, this.#settings);
    if (id === undefined) return true;
    const { approvals } = this.#deps.agents.runtime;
    // Somebody else learns from the turn that the calls are not theirs to decide.
    if (!approvals || this.#settings.asker !== sender.id) return false;
    const principal = this.#deps.agents.principal(this.#message);
    const waiting = await approvals.list({ limit: 1_000, order: 'desc' }, principal, account);
    return !waiting.some((one) => one.id === id);
  }

  async #claim(target: Target, account: Account, signal: AbortSignal): Promise<TurnOutcome> {
    const { agents, ctx } = this.#deps;
    const { runtime } = agents;
    const principal = agents.principal(this.#message);
    const { seq } = this.#head;
    const key = { project: principal.project, route: ctx.entry, key: seq };
    const claimed = await runtime.claim(key, seq, account);
    switch (claimed.kind) {
      case 'new': {
        const { claim } = claimed;
        try {
          const refused = runtime.countRequest?.(principal).refused;
          if (refused) return outcomeOf(failureOf(refused, false));
          const content = await this.#content(target, account, signal);
          signal.throwIfAborted();
          const recorder = { add: (batch: readonly AgentEvent[]) => this.#record(batch), text: () => this.#recorded };
          return await this.#run(runtime, target, account, content, { claim, recorder }, signal);
        } finally {
          claim.release();
        }
      }
      case 'replay':
        return { kind: 'tell', as: 'failed', text: claimed.text };
      case 'interrupted':
        return { kind: 'tell', as: 'failed', text: NOTICES.interrupted };
      case 'failed':
        return outcomeOf(claimed.failure);
      default: // An earlier attempt has not settled yet.
        return { kind: 'again', failure: failureOf(new TurnError('session_busy', 'The earlier attempt still runs.'), false) };
    }
  }

  async #content(target: Target, account: Account, signal: AbortSignal): Promise<string | readonly ContentPart[]> {
    const { press, images = [] } = this.#message;
    if (press !== undefined) return press;
    const text = messageText(this.#message);
    const parts = await imageParts(images, target, this.#deps.platform, account, signal);
    if (parts.length === 0) return text;
    return [...parts, ...(text === '' ? [] : [{ type: 'text', text } as const])];
  }

  async #run(
    runtime: AgentRuntime,
    target: Target,
    account: Account,
    content: string | readonly ContentPart[],
    idempotency: TurnIdempotency,
    signal: AbortSignal,
  ): Promise<TurnOutcome> {
    const { ctx, agents, state } = this.#deps;
    const display = await this.#display();
    let reply: PreparedReply | undefined;
    const turn = runtime.run({
      target,
      principal: agents.principal(this.#message),
      account,
      messages: [{ role: 'user', content }],
      session: { key: sessionKey(ctx.name, this.#message, this.#settings.sessions), busy: 'enqueue' },
      commitState: (answer) => {
        reply = this.#reply(target.name, answer);
        return state.changes({ ...this.#head.removal, ...reply.values, ...this.#changedSettings() });
      },
      clientTools: [],
      params: {},
      incremental: display !== undefined,
      requestId: `req_${ctx.ids.base62(20)}`,
      transport: ctx.name,
      metadata: {},
      signal,
      idempotency,
    });
    let failure: Failure | undefined;
    for await (const batch of turn) {
      display?.add(batch);
      for (const event of batch) if (event.type === 'failed') failure = event.failure;
    }
    await display?.end();
    if (!failure) {
      reply?.done(this.#kept);
      return { kind: 'done' };
    }
    if (signal.aborted) return { kind: 'cut' };
    ctx.log.info({ code: failure.code, agent: target.name }, 'the turn of a message failed');
    return outcomeOf(failure);
  }

  async #display(): Promise<LiveDisplay | undefined> {
    const { platform, state, ctx, pacing } = this.#deps;
    if (!platform.live) return undefined;
    const { seq } = this.#head;
    const { reply: id, chat, to, sender } = this.#message;
    this.#kept = await state.get(KEYS.kept(seq));
    const keep = async (kept: unknown) => {
      await state.store({ [KEYS.kept(seq)]: kept });
      this.#kept = kept;
    };
    const answer = platform.live({ id, chat, to, sender, kept: this.#kept, keep });
    return answer && new LiveDisplay(answer, chat, { clock: ctx.clock, log: ctx.log, pacing });
  }

  #reply(agent: string, answer: readonly Message[]): PreparedReply {
    const { ctx, outbox } = this.#deps;
    const { reply: id, chat, thread, to, id: replyTo } = this.#message;
    const text = answerText(answer) || NOTICES.noAnswer;
    const at = ctx.clock.now();
    const { buttons } = this.#asks;
    return outbox.prepare(this.#head.seq, { id, chat, thread, to, text, kind: 'reply', at, buttons, agent, replyTo });
  }

  /** What waits for approval in the chat from now on. */
  #changedSettings(): Values {
    const { agent, sessions, asks } = this.#settings;
    const asked = this.#asks.settings;
    if (!asked && !asks) return {};
    const settings: ChatSettings = { agent, sessions, ...(asked && { ...asked, asker: this.#message.sender.id }) };
    return { [KEYS.chat(laneOf(this.#message))]: settings };
  }

  #recorded = '';

  /** If the turn fails after tools ran, its failure is stored for the next attempt. */
  #record(batch: readonly AgentEvent[]): void {
    this.#asks.add(batch);
    for (const event of batch) if (event.type === 'failed') this.#recorded = event.failure.message;
  }
}

function outcomeOf(failure: Failure): TurnOutcome {
  if (STOPPED.has(failure.code)) return { kind: 'cut' };
  if (AGAIN.has(failure.code) && !failure.toolsRan) return { kind: 'again', failure };
  return { kind: 'tell', as: 'failed', text: failure.message };
}
