import { readFile } from 'node:fs/promises';
import type { Clock, Logger, PluginContext } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { BearerConfig } from '../config.js';
import { writeAtomically } from './atomic-write.js';

/** Milliseconds between two writes. */
const INTERVAL = 60_000;

/** When each token was last used: milliseconds since the epoch by token id. */
export type LastUses = ReadonlyMap<string, number>;

/** The file with the last uses, beside the tokens file: each file has one writer. */
export function lastUseFile(tokensFile: string): string {
  return `${tokensFile}.used`;
}

/** Reads the file. A missing or damaged file counts as empty, because nothing depends on it. */
export async function readLastUses(path: string): Promise<LastUses> {
  try {
    const content: unknown = JSON.parse(await readFile(path, 'utf8'));
    const times = Object.entries(content ?? {}).map(([id, time]): [string, number] => [id, Date.parse(String(time))]);
    return new Map(times.filter(([, time]) => !Number.isNaN(time)));
  } catch {
    return new Map();
  }
}

/** Writes when tokens were used to a file, at most once a minute. No request waits for it. */
export class LastUseRecorder {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #uses = new Map<string, number>();
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(
    @inject(CONTEXT)
    { config, resolvePath, clock, log }: Pick<PluginContext<BearerConfig>, 'config' | 'resolvePath' | 'clock' | 'log'>,
  ) {
    this.#path = lastUseFile(resolvePath(config.tokensFile));
    this.#clock = clock;
    this.#log = log;
  }

  async start(): Promise<void> {
    for (const [id, time] of await readLastUses(this.#path)) this.#uses.set(id, time);
  }

  /** Records a use. @returns whether it is the first. */
  record(id: string): boolean {
    const isFirst = !this.#uses.has(id);
    this.#uses.set(id, this.#clock.now());
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
      try {
        // Another server with the same tokens may have written later uses.
        for (const [id, time] of await readLastUses(this.#path)) {
          this.#uses.set(id, Math.max(time, this.#uses.get(id) ?? 0));
        }
        const times = [...this.#uses].map(([id, time]) => [id, new Date(time).toISOString()]);
        await writeAtomically(this.#path, `${JSON.stringify(Object.fromEntries(times), undefined, 2)}\n`);
        this.#hasFailed = false;
      } catch (error) {
        if (!this.#hasFailed) this.#log.warn({ err: error }, 'could not write when tokens were last used; will retry');
        this.#hasFailed = true;
      }
    });
  }
}
