import type { Clock, IdSource, Logger } from '@plugboard/kernel';
import { backoff } from '../base/backoff.js';
import { reasonOf } from '../base/reason.js';
import { timeOf } from '../base/time.js';
import { untilAborted, wait } from '../base/wait.js';
import type { Outgoing, Platform, SendResult } from '../platform/platform.js';
import type { Progress, StoredReply } from '../state/records.js';
import type { Outbox } from './outbox.js';
import type { Pacing } from './pacing.js';
import type { PendingReply } from './pending-reply.js';

/** Milliseconds before a part is tried again. */
const BACKOFF = { first: 2_000, most: 60 * 60_000 };
/** Milliseconds that a reply is tried. */
const TRIED_FOR = 24 * 60 * 60_000;
/** Milliseconds that a reply which is tried again and again holds up the later ones of its lane. */
const HOLDS_UP = 10 * 60_000;
/** Milliseconds for one attempt. */
const ATTEMPT = 60_000;
/** Parts that are sent at once. */
const MAX_AT_ONCE = 16;
/** Milliseconds that an attempt has after the entry was asked to stop. */
const LAST_ATTEMPT = 2_000;
/** Milliseconds after which the store is tried again. */
const STORE_RETRY = 1_000;
/** Milliseconds until a lane is tried again before its time because another one succeeded. */
const WOKEN_AGAIN = 60_000;

interface SenderDependencies {
  readonly platform: Platform;
  readonly outbox: Outbox;
  readonly pacing: Pacing;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/** The replies of a lane that wait, in order, and what ends a wait before its time. */
interface Lane {
  readonly waiting: PendingReply[];
  wake: AbortController;
  /** When another lane's success woke it. */
  wokenAt?: number | undefined;
}

/**
 * Sends replies: in order in each lane, the lanes side by side.
 *
 * 1. A part that the platform does not take for now is tried again: after 2 s, then twice as long,
 *    at most an hour, for a day. The later replies of its lane wait meanwhile, ten minutes at most.
 * 2. A reply that is refused for good, or was tried for a day, goes to the list of failed ones, and
 *    the lane goes on.
 * 3. Where the platform says how long to wait, nothing is sent to the chat until then.
 * 4. A part that is taken proves that the platform is back: the other lanes that failed are tried
 *    now, each of them once a minute at most.
 */
export class Sender {
  readonly #deps: SenderDependencies;
  readonly #lanes = new Map<string, Lane>();
  readonly #running = new Set<Promise<void>>();
  readonly #permits: (() => void)[] = [];
  readonly #stopping = new AbortController();
  readonly #cut = new AbortController();
  #sending = 0;
  #isStarted = false;

  constructor(deps: SenderDependencies) {
    this.#deps = deps;
  }

  /** Sends what was added. Nothing is sent before. */
  start(): void {
    this.#isStarted = true;
    for (const [name, lane] of this.#lanes) this.#run(name, lane);
  }

  add(reply: PendingReply): void {
    const { isPaused, dueAt } = reply.progress;
    const left = (dueAt ?? 0) - this.#deps.clock.now();
    if (isPaused && left > 0) this.#deps.pacing.pause(reply.chat, left);
    const lane = this.#lanes.get(reply.lane);
    if (lane) {
      lane.waiting.push(reply);
      lane.wake.abort();
      return;
    }
    const begun: Lane = { waiting: [reply], wake: new AbortController() };
    this.#lanes.set(reply.lane, begun);
    if (this.#isStarted) this.#run(reply.lane, begun);
  }

  /** The platform is reached again: what waits for its next attempt is tried now. */
  wake(): void {
    for (const lane of this.#lanes.values()) this.#wake(lane);
  }

  /** Tries what waits for its next attempt now. @returns the ids of the replies. */
  sendNow(): readonly string[] {
    return this.#lanes
      .values()
      .flatMap((lane) => this.#wake(lane))
      .toArray();
  }

  /** Why replies wait, and when the next attempt is. Undefined while the platform takes all. */
  get failure(): string | undefined {
    let [count, next, reason]: [number, number, string | undefined] = [0, Number.POSITIVE_INFINITY, undefined];
    for (const { waiting } of this.#lanes.values()) {
      const failed = waiting.filter(hasFailed);
      if (failed.length === 0) continue;
      count += waiting.length;
      reason ??= failed[0]?.failure;
      for (const { progress } of failed) next = Math.min(next, progress.dueAt ?? 0);
    }
    if (reason === undefined) return undefined;
    const when = next > this.#deps.clock.now() ? timeOf(next) : 'now';
    return `${count} ${count === 1 ? 'reply waits' : 'replies wait'}: ${reason}; next attempt ${when}`;
  }

  /** Ends after the parts that are being sent. What is left is sent after the next start. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopping.abort();
    for (const { wake } of this.#lanes.values()) wake.abort();
    for (const start of this.#permits.splice(0)) start();
    const cut = () => this.#cut.abort();
    const timer = this.#deps.clock.after(LAST_ATTEMPT, cut);
    signal.addEventListener('abort', cut, { once: true });
    if (signal.aborted) cut();
    await Promise.all(this.#running);
    timer.cancel();
    signal.removeEventListener('abort', cut);
  }

  /** Ends a wait that the platform did not ask for. @returns the ids of the replies that waited. */
  #wake({ waiting, wake }: Lane): readonly string[] {
    const now = this.#deps.clock.now();
    const woken = waiting.filter(({ progress }) => !progress.isPaused && (progress.dueAt ?? 0) > now);
    for (const reply of woken) reply.progress = { ...reply.progress, dueAt: undefined };
    wake.abort();
    return woken.map(({ id }) => id);
  }

  /** A lane has succeeded. */
  #wakeOthers(succeeded: Lane): void {
    const now = this.#deps.clock.now();
    for (const lane of this.#lanes.values()) {
      if (lane === succeeded || !lane.waiting.some(hasFailed)) continue;
      if (now - (lane.wokenAt ?? Number.NEGATIVE_INFINITY) < WOKEN_AGAIN) continue;
      lane.wokenAt = now;
      this.#wake(lane);
    }
  }

  #run(name: string, lane: Lane): void {
    const running = this.#work(name, lane).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Never rejects. */
  async #work(name: string, lane: Lane): Promise<void> {
    const { log, clock, pacing } = this.#deps;
    while (!this.#stopping.signal.aborted) {
      const reply = this.#next(lane);
      if (!reply) break;
      const ms = Math.max((reply.progress.dueAt ?? 0) - clock.now(), pacing.left(reply.chat));
      if (ms > 0) {
        await wait(clock, ms, lane.wake.signal);
        if (lane.wake.signal.aborted) lane.wake = new AbortController();
        continue;
      }
      try {
        if (await this.#send(reply, lane)) lane.waiting.splice(lane.waiting.indexOf(reply), 1);
      } catch (err) {
        log.warn({ err, reply: reply.id }, 'the store failed while a reply was sent; it is tried again');
        await wait(clock, STORE_RETRY, this.#stopping.signal);
      }
    }
    this.#lanes.delete(name);
  }

  /** The reply that is next: one that was tried for long enough is passed by while it waits. */
  #next({ waiting }: Lane): PendingReply | undefined {
    const now = this.#deps.clock.now();
    const dueAt = ({ progress }: PendingReply) => progress.dueAt ?? 0;
    const isPassed = (one: PendingReply) => now - (one.progress.since ?? now) >= HOLDS_UP && dueAt(one) > now;
    return waiting.find((one) => !isPassed(one)) ?? waiting.toSorted((a, b) => dueAt(a) - dueAt(b))[0];
  }

  /** Makes one attempt. @returns whether the reply is done, one way or the other. */
  async #send(head: PendingReply, lane: Lane): Promise<boolean> {
    const { platform, outbox } = this.#deps;
    const reply = await outbox.read(head);
    if (!reply) return true; // an earlier removal took effect, although the store said that it failed
    const parts = platform.split(reply.text);
    const count = Math.max(1, parts.length);
    const { index } = head.progress;
    const isLast = index >= count - 1;
    const result = await this.#attempt(head, reply, { index, count, text: parts[index] ?? '', isLast });
    if (result === undefined) return false; // cut by the stop
    if (result.kind === 'later') return await this.#later(head, reply, result, lane);
    head.failure = undefined;
    if (result.kind === 'sent') this.#wakeOthers(lane);
    if (result.kind === 'sent' && isLast) await outbox.remove(head);
    else if (result.kind === 'sent') {
      await outbox.note(head, { index: index + 1, attempts: 0 }, result.kept ?? head.kept);
      head.mayHaveArrived = false;
      return false;
    } else if (result.kind === 'never') await this.#fail(head, reply, result.reason);
    return true;
  }

  async #attempt(
    head: PendingReply,
    reply: StoredReply,
    part: { readonly index: number; readonly count: number; readonly text: string; readonly isLast: boolean },
  ): Promise<SendResult | undefined> {
    const { platform, clock } = this.#deps;
    const { index, count, text, isLast } = part;
    const { thread, buttons, ...rest } = reply;
    const { mayHaveArrived, kept } = head;
    const message: Outgoing = { ...rest, text, index, count, mayHaveArrived, kept, ...(isLast && { buttons }) };
    await this.#acquire();
    head.mayHaveArrived = true;
    const limit = new AbortController();
    const timer = clock.after(ATTEMPT, () => limit.abort());
    const signal = AbortSignal.any([limit.signal, this.#cut.signal]);
    try {
      if (this.#stopping.signal.aborted) return undefined;
      const result = await untilAborted(platform.send(message, signal), signal);
      if (result !== undefined || this.#cut.signal.aborted) return result;
      return { kind: 'later', reason: `no answer in ${ATTEMPT / 1_000} s` };
    } catch (error) {
      if (this.#cut.signal.aborted) return undefined;
      return { kind: 'later', reason: reasonOf(error) };
    } finally {
      timer.cancel();
      this.#release();
    }
  }

  /** @returns whether the reply was given up. */
  async #later(
    head: PendingReply,
    reply: StoredReply,
    result: SendResult & { readonly kind: 'later' },
    lane: Lane,
  ): Promise<boolean> {
    const { outbox, pacing, clock, ids, log } = this.#deps;
    const now = clock.now();
    const { index, since = now } = head.progress;
    const attempts = head.progress.attempts + 1;
    if (now - since >= TRIED_FOR) {
      await this.#fail(head, reply, `tried for a day: ${result.reason}`);
      return true;
    }
    const asked = result.after === undefined ? undefined : pacing.pause(head.chat, result.after);
    const ms = asked ?? backoff(BACKOFF, attempts, ids);
    // The first of a row, also of what an earlier life left.
    if (!lane.waiting.some(hasFailed))
      log.info({ reply: head.id, reason: result.reason }, 'the platform did not take a reply; it is tried again');
    head.failure = result.reason;
    const progress: Progress = { index, attempts, since, dueAt: now + ms, ...(asked !== undefined && { isPaused: true }) };
    head.progress = progress;
    await outbox.note(head, progress);
    return false;
  }

  async #fail(head: PendingReply, reply: StoredReply, reason: string): Promise<void> {
    const { outbox, log } = this.#deps;
    head.progress = { ...head.progress, attempts: head.progress.attempts + 1 };
    await outbox.fail(head, reply, reason);
    log.warn({ reply: head.id, reason }, 'a reply failed for good; `plugboard outbox` lists it, and sends it again');
  }

  async #acquire(): Promise<void> {
    if (this.#sending >= MAX_AT_ONCE && !this.#stopping.signal.aborted)
      await new Promise<void>((resolve) => this.#permits.push(resolve));
    this.#sending += 1;
  }

  #release(): void {
    this.#sending -= 1;
    this.#permits.shift()?.();
  }
}

function hasFailed({ failure }: PendingReply): boolean {
  return failure !== undefined;
}
