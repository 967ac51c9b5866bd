import type { Account } from '@plugboard/kernel/contracts';
import type { ResponseService } from '@plugboard/open-responses';
import type { Caller } from './caller.js';
import type { Outbox } from './outbox.js';

interface ConnectionWatchOptions {
  readonly caller: Caller;
  readonly outbox: Outbox;
  readonly service: ResponseService;
  /** Bytes that the client may be behind before the watch ends: `maxBuffered`. */
  readonly maxBehind: number;
  /** Whether a response is created or resumed on this connection. */
  isRead(id: string): boolean;
  /** Says with an `error` event why a conversation is not watched, or no longer. */
  refuse(error: unknown, conversation: string): void;
  /** Called when the last response that is shown has ended. */
  onIdle(): void;
}

type Watch = Awaited<ReturnType<ResponseService['watch']>>;

/**
 * The conversation that a connection watches, one at a time: sends the events of its responses that
 * the connection does not receive otherwise.
 */
export class ConnectionWatch {
  readonly #options: ConnectionWatchOptions;
  /** What was asked for last; undefined if that was to stop. */
  #wanted: { readonly conversation: string; readonly account: Account } | undefined;
  #watch: Watch | undefined;
  /** What the caller may reach, as it was when the watch began. */
  #reach = '';
  #running = 0;
  /** Resolves when the last watch has ended: its events are sent before those of the next. */
  #last: Promise<void> = Promise.resolve();

  constructor(options: ConnectionWatchOptions) {
    this.#options = options;
  }

  /** Responses that are shown and have not ended. */
  get inFlight(): number {
    return this.#running;
  }

  get isOpen(): boolean {
    return this.#wanted !== undefined;
  }

  /** Watches a conversation in place of the one before. @param conversation undefined for none. */
  watch(conversation: string | undefined, account: Account): void {
    const wanted = conversation === undefined ? undefined : { conversation, account };
    const leave = account.hold();
    this.#wanted = wanted;
    this.#watch?.close();
    this.#last = this.#last.then(() => (wanted && this.#wanted === wanted ? this.#run(wanted) : undefined)).finally(leave);
  }

  /** The turn that a response shows, until it has ended. */
  turnOf(id: string) {
    return this.#watch?.turnOf(id);
  }

  /** Watches again if the reach of the token has changed: the session may be outside of it now. */
  recheck(): void {
    if (this.#wanted && this.#watch && reachOf(this.#options.caller) !== this.#reach)
      this.watch(this.#wanted.conversation, this.#wanted.account);
  }

  close(): void {
    this.#wanted = undefined;
    this.#watch?.close();
  }

  /** Shows a conversation until another is wanted. Never rejects. */
  async #run(wanted: { readonly conversation: string; readonly account: Account }): Promise<void> {
    const { caller, service, outbox, maxBehind, isRead, refuse } = this.#options;
    const { conversation, account } = wanted;
    try {
      const principal = await caller.authenticate('sessions:read');
      this.#reach = reachOf(caller);
      const watch = await service.watch(conversation, principal, { maxBehind, setting: 'maxBuffered', account, isRead });
      this.#watch = watch;
      if (this.#wanted !== wanted) return watch.close();
      const { responses, turns } = watch;
      outbox.reply(JSON.stringify({ type: 'svc:conversation.watched', conversation, responses, turns }));
      for await (const events of watch.events()) {
        const full = outbox.write(events);
        if (full) await full;
        this.#count(watch.running);
      }
    } catch (error) {
      if (this.#wanted === wanted) this.#wanted = undefined;
      refuse(error, conversation);
    } finally {
      this.#watch?.close();
      this.#watch = undefined;
      this.#count(0);
    }
  }

  #count(running: number): void {
    const before = this.#running;
    this.#running = running;
    if (before > 0 && running === 0) this.#options.onIdle();
  }
}

/** What the caller's token reaches, as a text to compare. */
function reachOf({ principal: { project, agents, scopes } }: Caller): string {
  return JSON.stringify([project, agents, scopes]);
}
