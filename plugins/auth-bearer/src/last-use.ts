import { readFile } from 'node:fs/promises';
import type { Clock, Logger, Timer } from '@plugboard/kernel';
import { writeAtomically } from './atomic-write.js';

/** Milliseconds between two writes. */
const INTERVAL = 60_000;

/** When each token was last used, by its id, in milliseconds since 1970. */
export type Uses = ReadonlyMap<string, number>;

/** The file of last uses that belongs to a tokens file. It has its own, so that each has one writer. */
export function usesFile(tokensFile: string): string {
  return `${tokensFile}.used`;
}

/** What stands in the file. Nothing hangs on it: one that is missing or damaged is as good as empty. */
export async function readUses(path: string): Promise<Uses> {
  try {
    const content: unknown = JSON.parse(await readFile(path, 'utf8'));
    const times = Object.entries(content ?? {}).map(([id, time]): [string, number] => [id, Date.parse(String(time))]);
    return new Map(times.filter(([, time]) => !Number.isNaN(time)));
  } catch {
    return new Map();
  }
}

/** Remembers when tokens were used, and writes it down once a minute at most, behind the backs of the requests. */
export class LastUse {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #uses = new Map<string, number>();
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #faulty = false;

  /** @param path absolute. */
  constructor(path: string, clock: Clock, log: Logger) {
    this.#path = path;
    this.#clock = clock;
    this.#log = log;
  }

  async start(): Promise<void> {
    for (const [id, time] of await readUses(this.#path)) this.#uses.set(id, time);
  }

  /** @returns whether nobody is known to have used it before. */
  note(id: string): boolean {
    const isFirst = !this.#uses.has(id);
    this.#uses.set(id, this.#clock.now());
    this.#timer ??= this.#clock.after(INTERVAL, () => this.#write());
    return isFirst;
  }

  /** Writes what is not written yet. */
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
        for (const [id, time] of await readUses(this.#path)) this.#uses.set(id, Math.max(time, this.#uses.get(id) ?? 0));
        const times = [...this.#uses].map(([id, time]) => [id, new Date(time).toISOString()]);
        await writeAtomically(this.#path, `${JSON.stringify(Object.fromEntries(times), undefined, 2)}\n`);
        this.#faulty = false;
      } catch (error) {
        if (!this.#faulty) this.#log.warn({ err: error }, 'when tokens were last used cannot be written down');
        this.#faulty = true;
      }
    });
  }
}
