import { type Failure, TurnError } from '@plugboard/kernel/contracts';
import { backoff } from '../base/backoff.js';
import { NOTICES } from '../base/notices.js';
import { wait } from '../base/wait.js';
import type { Values } from '../state/channel-state.js';
import { KEYS } from '../state/keys.js';
import type { ChatSettings, StoredMessage, StoredReply } from '../state/records.js';
import { type Command, commandOf, runCommand } from './commands.js';
import { MessageTurn, type TurnDependencies } from './message-turn.js';
import type { QueuedMessage } from './queued-message.js';

/** Milliseconds that a message is tried whose turn cannot run for now. */
const TRIED_FOR = 10 * 60_000;
/** Milliseconds before the next try. */
const BACKOFF = { first: 1_000, most: 30_000 };
/** A turn that so many crashes have cut is given up. */
const MAX_CUTS = 10;

/**
 * The messages of one chat, or of a thread in it: an actor that works on one at a time, in order.
 *
 * 1. `/stop` and the press of a stop button overtake the others, and end the one that runs.
 * 2. A command changes the chat's settings, a message runs a turn. Both end with one transaction
 *    that removes the message.
 * 3. If the state cannot be read or stored, the same is tried again.
 */
export class ChatQueue {
  readonly #deps: TurnDependencies;
  readonly #lane: string;
  /** Aborts when the entry is asked to stop: no further message begins. */
  readonly #stopping: AbortSignal;
  readonly #onIdle: () => void;
  readonly #waiting: QueuedMessage[] = [];
  #current: { readonly head: QueuedMessage; readonly abort: AbortController } | undefined;
  #working: Promise<void> | undefined;
  #faults = 0;

  constructor(deps: TurnDependencies, lane: string, stopping: AbortSignal, onIdle: () => void) {
    this.#deps = deps;
    this.#lane = lane;
    this.#stopping = stopping;
    this.#onIdle = onIdle;
  }

  /** How many messages wait behind the one that runs. */
  get size(): number {
    return this.#waiting.length - (this.#current ? 1 : 0);
  }

  add(message: QueuedMessage): void {
    this.#waiting.push(message);
    const { head, abort } = this.#current ?? {};
    if (head && (message.isStop || isStopped(head, message)))
      abort?.abort(new TurnError('turn_cancelled', 'The answer was stopped.'));
  }

  /** Works until the queue is empty. Does nothing if it works already. */
  start(): void {
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
      if (this.#waiting.length === 0) this.#onIdle();
      else if (!this.#stopping.aborted) this.start();
    });
  }

  /** Resolves when nothing runs any more. */
  async settled(): Promise<void> {
    await this.#working;
  }

  /** Ends the turn that runs. Its message stays. @returns whether one did. */
  cut(): boolean {
    this.#current?.abort.abort(new TurnError('stopped', 'The server stopped before the answer was complete.'));
    return this.#current !== undefined;
  }

  /** Never rejects. */
  async #work(): Promise<void> {
    const { log, clock } = this.#deps.ctx;
    while (!this.#stopping.aborted) {
      const next = this.#waiting.find(({ isStop }) => isStop) ?? this.#waiting.find(({ stops }) => stops) ?? this.#waiting[0];
      if (!next) return;
      try {
        if (next.isStop) await this.#stop(next);
        else if (next.stops !== undefined) await this.#stopAnswer(next);
        else await this.#process(next);
        this.#faults = 0;
      } catch (err) {
        if (this.#faults++ === 0) log.warn({ err }, 'a message waits, because the store failed; it is tried again');
        await wait(clock, backoff(BACKOFF, this.#faults), this.#stopping);
      }
    }
  }

  async #process(head: QueuedMessage): Promise<void> {
    const { state, outbox } = this.#deps;
    const abort = new AbortController();
    this.#current = { head, abort };
    try {
      const message = await state.get<StoredMessage>(KEYS.message(head.seq));
      if (!message) {
        await outbox.adopt(head.seq); // the turn was stored, although the store said that it failed
        return this.#remove([head]);
      }
      if (head.cuts >= MAX_CUTS) return await this.#fail(head, 'failed', NOTICES.crashed(head.cuts));
      const settings = (await state.get<ChatSettings>(KEYS.chat(this.#lane))) ?? {};
      const command = message.press === undefined ? commandOf(message.text) : undefined;
      if (command) return await this.#command(head, message, command, settings);
      head.hasBegun = true;
      const outcome = await new MessageTurn(this.#deps, head, message, settings).run(abort.signal);
      if (outcome.kind === 'done') this.#remove([head]);
      else if (outcome.kind === 'tell') await this.#fail(head, outcome.as, outcome.text);
      else if (outcome.kind === 'drop') await this.#drop([head]);
      else if (outcome.kind === 'again') await this.#again(head, outcome.failure, abort.signal);
      else if (!abort.signal.aborted) await wait(this.#deps.ctx.clock, BACKOFF.first, this.#stopping); // the server stops
    } finally {
      this.#current = undefined;
    }
  }

  /** Ends a message whose turn failed, unless the turn was stored all the same. */
  async #fail(head: QueuedMessage, kind: StoredReply['kind'], text: string): Promise<void> {
    const message = await this.#deps.state.get<StoredMessage>(KEYS.message(head.seq));
    await this.#end(head, message, { kind, text }, [head]);
  }

  async #command(head: QueuedMessage, message: StoredMessage, command: Command, settings: ChatSettings): Promise<void> {
    const after = runCommand(command, settings, this.#deps.agents);
    const changed = after.settings === settings ? {} : { [KEYS.chat(this.#lane)]: after.settings };
    await this.#end(head, message, { kind: 'notice', text: after.text }, [head], changed);
  }

  /** Waits before the next try, or gives the message up. */
  async #again(head: QueuedMessage, failure: Failure, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps.ctx;
    const now = clock.monotonic();
    const since = head.failingSince ?? now;
    head.failingSince = since;
    head.attempts += 1;
    if (now - since >= TRIED_FOR) return this.#fail(head, 'failed', failure.message);
    const ms = Math.max(backoff(BACKOFF, head.attempts), (failure.retryAfter ?? 0) * 1_000);
    await wait(clock, ms, AbortSignal.any([signal, this.#stopping]));
  }

  /** Ends the answer, and drops what waits before `/stop`. */
  async #stop(stop: QueuedMessage): Promise<void> {
    const message = await this.#deps.state.get<StoredMessage>(KEYS.message(stop.seq));
    const dropped = this.#waiting.filter(({ seq }) => seq < stop.seq);
    const stopped = dropped.find(({ hasBegun }) => hasBegun);
    const text = stopped ? NOTICES.stopped(dropped.length - 1) : NOTICES.nothingRuns(dropped.length);
    await this.#end(stopped ?? stop, message, { kind: 'notice', text }, [...dropped, stop]);
  }

  /** Ends the answer that a stop button belongs to. Nothing if it has ended. */
  async #stopAnswer(press: QueuedMessage): Promise<void> {
    const stopped = this.#waiting.find((head) => head.seq < press.seq && isStopped(head, press));
    if (!stopped) return this.#drop([press]);
    const message = await this.#deps.state.get<StoredMessage>(KEYS.message(stopped.seq));
    await this.#end(stopped, message, { kind: 'notice', text: NOTICES.stopped(0) }, [stopped, press]);
  }

  /** @param head whose number, reply and kept state the text takes over. */
  async #end(
    head: QueuedMessage,
    message: StoredMessage | undefined,
    what: Pick<StoredReply, 'kind' | 'text'>,
    ended: readonly QueuedMessage[],
    changed: Values = {},
  ): Promise<void> {
    const { state, outbox, platform, ctx } = this.#deps;
    if (!message) {
      await outbox.adopt(head.seq);
      return this.#remove(ended);
    }
    const { chat, thread, to, id: replyTo } = message;
    const kept = platform.live ? await state.get(KEYS.kept(head.seq)) : undefined;
    const reply = outbox.prepare(head.seq, { id: head.reply, chat, thread, to, replyTo, at: ctx.clock.now(), ...what });
    await state.store({ ...removalOf(ended), ...changed, ...reply.values });
    reply.done(kept);
    this.#remove(ended);
  }

  /** Removes messages without a word. */
  async #drop(ended: readonly QueuedMessage[]): Promise<void> {
    await this.#deps.state.store(removalOf(ended));
    this.#remove(ended);
  }

  #remove(ended: readonly QueuedMessage[]): void {
    for (const message of ended) {
      const index = this.#waiting.indexOf(message);
      if (index < 0) continue;
      message.release?.();
      this.#waiting.splice(index, 1);
    }
  }
}

function isStopped(head: QueuedMessage, { stops }: QueuedMessage): boolean {
  return stops === true ? head.hasBegun : stops === head.reply;
}

function removalOf(messages: readonly QueuedMessage[]): Values {
  return Object.assign({}, ...messages.map(({ removal }) => removal));
}
