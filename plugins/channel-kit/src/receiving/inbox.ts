import type { PluginContext, StateChange } from '@plugboard/kernel';
import { NOTICES } from '../base/notices.js';
import { Throttle } from '../base/throttle.js';
import type { Chats } from '../chats/chats.js';
import { commandOf } from '../chats/commands.js';
import type { Incoming, Platform, Receipt } from '../platform/platform.js';
import type { Outbox, PreparedReply } from '../replies/outbox.js';
import type { ChannelState, Values } from '../state/channel-state.js';
import { IDS_EXPIRE, KEYS, laneOf } from '../state/keys.js';
import type { StoredMessage } from '../state/records.js';
import type { Sequence } from '../state/sequence.js';
import type { WaitingBudget } from '../state/waiting-budget.js';
import type { Admission } from './admission.js';
import { incomingFault, withShownName } from './incoming.js';
import type { PairedSender, Pairing } from './pairing.js';

/** Messages of a chat that wait. The next one is refused aloud. */
const MAX_WAITING = 100;
/** Images of a message. */
const MAX_IMAGES = 10;
/** Milliseconds until a chat is told again that its queue is full. */
const TOLD_AGAIN = 60_000;

export interface InboxDependencies {
  readonly ctx: Pick<PluginContext, 'clock' | 'ids' | 'log'>;
  readonly platform: Platform;
  readonly admission: Admission;
  readonly pairing: Pairing;
  readonly state: ChannelState;
  readonly sequence: Sequence;
  readonly budget: WaitingBudget;
  readonly outbox: Outbox;
  readonly chats: Chats;
}

/** A call of `receive` that waits for its transaction. */
interface Delivery {
  readonly messages: readonly Incoming[];
  readonly state: Values;
  /** Whether the receipt `full` reaches the sender. */
  readonly tellsFull: boolean;
  readonly done: PromiseWithResolvers<readonly Receipt[]>;
}

/** What one transaction stores, and what follows when it has. */
interface Transaction {
  readonly values: Record<string, unknown>;
  readonly ids: Record<string, unknown>;
  /** Messages that it adds, by lane. */
  readonly added: Map<string, number>;
  readonly after: (() => void)[];
  /** Gives back what was taken for it, if it fails. */
  readonly undo: (() => void)[];
  /** Of the delivery that is taken. */
  tellsFull: boolean;
}

/**
 * Takes what arrives (CH-6).
 *
 * 1. Deliveries are taken one after the other. Those that come meanwhile share the next
 *    transaction.
 * 2. A message is known by its ids, or its sender is heard or refused, before it costs anything.
 * 3. One transaction stores the messages, their ids and the platform's own state. Then the platform
 *    may be told, and the chats begin.
 */
export class Inbox {
  readonly #deps: InboxDependencies;
  readonly #full: Throttle;
  readonly #deliveries: Delivery[] = [];
  #isTaking = false;

  constructor(deps: InboxDependencies) {
    this.#deps = deps;
    this.#full = new Throttle(deps.ctx.clock, TOLD_AGAIN);
  }

  /** @param isRelayed whether another server has answered the platform already. */
  receive(messages: readonly Incoming[], state: Values, isRelayed = false): Promise<readonly Receipt[]> {
    const tellsFull = !isRelayed && this.#deps.platform.tellsFull === true;
    const delivery: Delivery = { messages, state, tellsFull, done: Promise.withResolvers() };
    this.#deliveries.push(delivery);
    if (!this.#isTaking) void this.#take();
    return delivery.done.promise;
  }

  /** Pairs the sender of a code, and says so. @returns undefined for an unknown code. */
  async approve(code: string): Promise<PairedSender | undefined> {
    const { pairing } = this.#deps;
    const request = pairing.find(code);
    if (!request) return undefined;
    const reply = this.#notice(NOTICES.paired, request);
    const paired = await pairing.approve(request, reply.values);
    reply.done();
    return paired;
  }

  /** Never rejects. */
  async #take(): Promise<void> {
    this.#isTaking = true;
    while (this.#deliveries.length > 0) {
      const deliveries = this.#deliveries.splice(0);
      const transaction: Transaction = { values: {}, ids: {}, added: new Map(), after: [], undo: [], tellsFull: false };
      try {
        const receipts: (readonly Receipt[])[] = [];
        for (const { messages, state, tellsFull } of deliveries) {
          transaction.tellsFull = tellsFull;
          receipts.push(await this.#receiptsOf(messages, transaction));
          Object.assign(transaction.values, state);
        }
        await this.#store(transaction);
        for (const follow of transaction.after) follow();
        for (const [index, { done }] of deliveries.entries()) done.resolve(receipts[index] ?? []);
      } catch (error) {
        for (const undo of transaction.undo) undo();
        for (const { done } of deliveries) done.reject(error);
      }
    }
    this.#isTaking = false;
  }

  async #receiptsOf(messages: readonly Incoming[], transaction: Transaction): Promise<readonly Receipt[]> {
    const receipts: Receipt[] = [];
    for (const message of messages) receipts.push(await this.#receiptOf(message, transaction));
    return receipts;
  }

  async #receiptOf(given: Incoming, transaction: Transaction): Promise<Receipt> {
    const { admission, ctx } = this.#deps;
    const message = withShownName(given);
    const fault = incomingFault(message);
    if (fault !== undefined) {
      ctx.log.error({ fault }, 'the platform handed in a message that cannot be kept; it is ignored');
      return 'ignored';
    }
    if (await this.#isKnown(message, transaction)) return 'known';
    const admitted = await admission.admit(message);
    const notice = admitted === 'refused' ? await admission.notice(message) : undefined;
    if (notice !== undefined) this.#say(notice, message, transaction);
    if (admitted !== 'heard') return admitted;
    return this.#admit(message, transaction);
  }

  async #isKnown({ ids }: Incoming, transaction: Transaction): Promise<boolean> {
    for (const id of ids) {
      const key = KEYS.id(id);
      if (key in transaction.ids || (await this.#deps.state.get(key)) !== undefined) return true;
    }
    return false;
  }

  #admit(message: Incoming, transaction: Transaction): Receipt {
    const { press, stops, images = [], unsupported, text } = message;
    const isPress = press !== undefined || stops !== undefined;
    if (!isPress && text.trim() === '' && images.length === 0 && unsupported === undefined) return 'ignored';
    const isStop = stops !== undefined || (press === undefined && commandOf(text)?.word === 'stop');
    if (!isStop && this.#isFull(message, transaction)) return this.#refuse(message, transaction);
    const cannot = unsupported ?? (images.length > MAX_IMAGES ? `more than ${MAX_IMAGES} images` : undefined);
    if (cannot !== undefined && !isPress) this.#say(NOTICES.unsupported(cannot), message, transaction);
    else if (!this.#add(message, transaction, isStop)) return this.#refuse(message, transaction);
    for (const id of message.ids) transaction.ids[KEYS.id(id)] = 1;
    return 'taken';
  }

  /** Whether as much of the chat waits as may: messages, or replies that are not sent yet. */
  #isFull(message: Incoming, { added }: Transaction): boolean {
    const lane = laneOf(message);
    const { chats, outbox } = this.#deps;
    return chats.sizeOf(lane) + (added.get(lane) ?? 0) >= MAX_WAITING || outbox.sizeOf(lane) >= MAX_WAITING;
  }

  #refuse(message: Incoming, transaction: Transaction): Receipt {
    if (!transaction.tellsFull && this.#full.allows(laneOf(message))) this.#say(NOTICES.full(MAX_WAITING), message, transaction);
    return 'full';
  }

  /** @returns false if the budget of what waits is used up. */
  #add(message: Incoming, transaction: Transaction, isStop: boolean): boolean {
    const { ctx, sequence, budget, state, chats } = this.#deps;
    const { chat, thread, to, sender, text, quoted, images, press, stops, id } = message;
    const reply = `msg_${ctx.ids.base62(20)}`;
    const stored: StoredMessage = { reply, chat, thread, to, sender, text, quoted, images, press, stops, id };
    const seq = sequence.next();
    const { values, pieces, size } = state.encode(KEYS.message(seq), stored);
    const release = budget.take(chat, size);
    if (!release && !isStop) return false;
    Object.assign(transaction.values, values);
    const lane = laneOf(message);
    if (!isStop) transaction.added.set(lane, (transaction.added.get(lane) ?? 0) + 1);
    if (release) transaction.undo.push(release);
    transaction.after.push(() => chats.add({ seq, message: stored, pieces, release }));
    return true;
  }

  /** Answers without a place in the queue. */
  #say(text: string, message: Incoming, { values, after }: Transaction): void {
    const reply = this.#notice(text, message);
    Object.assign(values, reply.values);
    after.push(() => reply.done());
  }

  #notice(text: string, { chat, thread, to, id: replyTo }: Pick<Incoming, 'chat' | 'thread' | 'to' | 'id'>): PreparedReply {
    const { ctx, outbox, sequence } = this.#deps;
    const id = `msg_${ctx.ids.base62(20)}`;
    return outbox.prepare(sequence.next(), { id, chat, thread, to, text, kind: 'notice', at: ctx.clock.now(), replyTo });
  }

  async #store({ values, ids }: Transaction): Promise<void> {
    const { state } = this.#deps;
    const expiring: readonly StateChange[] = Object.keys(ids).length === 0 ? [] : state.changes(ids, IDS_EXPIRE);
    if (expiring.length === 0 && Object.keys(values).length === 0) return;
    await state.store(values, expiring);
  }
}
