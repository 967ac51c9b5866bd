import type { Clock, Logger, PluginContext } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { IssuedTokenStorage } from '../storage/issued-token-storage.js';

/** Milliseconds between two writes. */
const INTERVAL = 60_000;

/** Stores when tokens were used, at most once a minute. No request waits for it. */
export class LastUseRecorder {
  readonly #storage: Pick<IssuedTokenStorage, 'current'>;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** The tokens that were used before. */
  readonly #known = new Set<string>();
  #pending = new Map<string, number>();
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(
    @inject(CONTEXT) { clock, log }: Pick<PluginContext, 'clock' | 'log'>,
    @inject(IssuedTokenStorage) storage: Pick<IssuedTokenStorage, 'current'>,
  ) {
    this.#storage = storage;
    this.#clock = clock;
    this.#log = log;
  }

  async start(): Promise<void> {
    for (const id of (await this.#storage.current.lastUses()).keys()) this.#known.add(id);
  }

  /** Records a use. @returns whether it is the first. */
  record(id: string): boolean {
    const isFirst = !this.#known.has(id);
    this.#known.add(id);
    this.#pending.set(id, this.#storage.current.now());
    this.#timer ??= this.#clock.after(INTERVAL, () => this.#write());
    return isFirst;
  }

  /** Writes the pending records. */
  async stop(): Promise<void> {
    if (this.#timer !== undefined) {
      this.#timer.cancel();
      this.#write();
    }
    await this.#writing;
  }

  #write(): void {
    this.#timer = undefined;
    this.#writing = this.#writing.then(async () => {
      const uses = this.#pending;
      this.#pending = new Map();
      try {
        await this.#storage.current.addUses(uses);
        this.#hasFailed = false;
      } catch (error) {
        this.#pending = new Map([...uses, ...this.#pending]);
        if (!this.#hasFailed) this.#log.warn({ err: error }, 'could not write when tokens were last used; will retry');
        this.#hasFailed = true;
      }
    });
  }
}
