import { type PluginContext, parseDuration } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { RuntimeSettings } from '../../config.js';
import { SETTLE_TIMEOUT } from '../tools/abandoned-tools.js';

/** What a stopping server waits for: a turn, or a tool that a person runs. */
export interface Running {
  /** Resolves when it has ended. Never rejects. */
  readonly ended: Promise<unknown>;
  /** How it ended, if it did. */
  readonly terminal?: { readonly type: string } | undefined;
  requestEnd(reason: TurnError): void;
}

/** The turns that wait or run, and what becomes of them when the server stops. */
export class RunningTurns {
  readonly #clock: PluginContext['clock'];
  /**
   * An array: a `Set` that changes with every request leaves its old tables to the garbage
   * collector, which keeps them, and the turns in them, until a full collection.
   */
  readonly #turns: Running[] = [];
  #drainLimit: number;
  /** When the server was asked to stop, in the clock's monotonic time. */
  #stopRequestedAt: number | undefined;
  #drained: Promise<void> | undefined;
  /** Turns that still ran at the limit. */
  readonly #cut = new Set<Running>();

  constructor(@inject(CONTEXT) { config, clock, host }: PluginContext<RuntimeSettings>) {
    this.#clock = clock;
    this.#drainLimit = drainLimit(config);
    host.stopRequested.addEventListener('abort', () => {
      this.#stopRequestedAt = clock.monotonic();
    });
  }

  /** Milliseconds that running turns have when the server stops. */
  get drainLimit(): number {
    return this.#drainLimit;
  }

  /** Milliseconds for `stop`: for the running turns, and for those that must be ended. */
  get stopLimit(): number {
    return this.#drainLimit + SETTLE_TIMEOUT + 1_000;
  }

  /** Changes the limit. */
  reconfigure(config: RuntimeSettings): void {
    this.#drainLimit = drainLimit(config);
  }

  /** Adds what is waited for until the returned function is called. */
  track(running: Running): () => void {
    this.#turns.push(running);
    return () => void this.#turns.splice(this.#turns.indexOf(running), 1);
  }

  /**
   * Waits for the turns of a stopping server, also for those whose caller has left, and ends those
   * that still run at the limit.
   */
  async drain(): Promise<void> {
    if (this.#stopRequestedAt !== undefined) await this.#ended();
  }

  /**
   * @param within milliseconds for all of it.
   * @throws Error if turns had to be ended.
   */
  async stop(signal: AbortSignal, within = this.stopLimit): Promise<void> {
    const limit = this.#clock.after(Math.max(0, within - SETTLE_TIMEOUT), () => this.#endAll());
    const aborted = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => aborted.resolve(), { once: true });
    await Promise.race([this.#ended(), aborted.promise]);
    limit.cancel();
    // A turn that was being stored ended as the store decided.
    const count = [...this.#cut].filter(({ terminal }) => terminal?.type !== 'finished').length;
    if (count === 0) return;
    const turns = count === 1 ? '1 turn was' : `${count} turns were`;
    throw new Error(`${turns} still running at the limit (\`limits.drain\`) and had to be ended`);
  }

  /** Resolves when all turns have ended, at the limit with a failure. */
  #ended(): Promise<void> {
    this.#drained ??= this.#waitForAll();
    return this.#drained;
  }

  async #waitForAll(): Promise<void> {
    const now = this.#clock.monotonic();
    const left = this.#drainLimit - (now - (this.#stopRequestedAt ?? now));
    const limit = this.#clock.after(Math.max(0, left), () => this.#endAll());
    while (this.#turns.length > 0) await Promise.all(this.#turns.map(({ ended }) => ended));
    limit.cancel();
  }

  #endAll(): void {
    for (const turn of this.#turns) this.#cut.add(turn);
    for (const turn of this.#cut) turn.requestEnd(new TurnError('stopped', 'The server stopped before the agent finished.'));
  }
}

function drainLimit({ limits }: RuntimeSettings): number {
  return parseDuration(limits.drain);
}
