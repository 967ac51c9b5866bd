import { once } from 'node:events';
import type { Logger, PluginContext } from '@plugboard/kernel';
import { type Lifecycle, parseSize } from '@plugboard/kernel';
import { type Budget, heapLimit } from '@plugboard/kernel/contracts';
import type { RecordConfig } from '../config.js';
import { fileNameOf } from '../format/file-name.js';
import type { Recording } from '../format/recording.js';
import { linesOf } from '../format/write-recording.js';
import { RecordingFolder } from './folder.js';
import { type RecordingSink, TurnRecorder } from './turn-recorder.js';

/** Milliseconds between two looks at the folder, and between two log lines about failures. */
const PRUNE_PAUSE = 1000;
const LOG_PAUSE = 60_000;

/** Bytes that turns and their recordings may hold, however few the folder may. */
const MIN_MEMORY = 16 * 2 ** 20;

/**
 * Writes the recordings of turns, after the turns: no turn waits for the disk, or fails with it.
 *
 * 1. A turn reserves what its recording holds. Without enough memory it is not recorded.
 * 2. When it has ended, its recording waits for its place in the queue, and is written.
 * 3. When the queue is empty, the oldest files are deleted.
 */
export class Recorder implements RecordingSink, Pick<Lifecycle, 'start' | 'stop' | 'health'> {
  readonly turns: TurnRecorder;
  readonly #context: PluginContext<RecordConfig>;
  readonly #log: Logger;
  readonly #folder: RecordingFolder;
  readonly #budget: Budget;
  readonly #queue: { readonly recording: Recording; readonly bytes: number }[] = [];
  #writing: Promise<void> | undefined;
  #prunedAt = Number.NEGATIVE_INFINITY;
  #isPruneDue = false;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #reason: string | undefined;
  #isStopped = false;

  constructor(context: PluginContext<RecordConfig>) {
    const { config, clock, log, budgets, entry } = context;
    const maxBytes = parseSize(config.maxBytes);
    this.#context = context;
    this.#log = log;
    this.#folder = new RecordingFolder(context.resolvePath(config.path), { keep: config.keep, maxBytes });
    this.#budget = budgets.create({
      name: 'recordings that are not written yet',
      unit: 'bytes',
      limit: Math.floor(Math.min(Math.max(maxBytes / 16, MIN_MEMORY), heapLimit() / 8)),
      setting: `${entry}.maxBytes`,
    });
    this.turns = new TurnRecorder(clock, this);
  }

  async start(): Promise<void> {
    this.turns.start();
    await this.#folder.create().then(() => this.#prune(), this.#failed);
  }

  wants(agent: string): boolean {
    return this.#context.config.agents?.includes(agent) ?? true;
  }

  grow(bytes: number): boolean {
    return this.#budget.reserve([], bytes);
  }

  done(recording: Recording | undefined, bytes: number): void {
    if (recording && !this.#isStopped) {
      this.#queue.push({ recording, bytes });
      this.#writing ??= this.#writeAll();
    } else this.#budget.release([], bytes);
  }

  health() {
    return this.#reason === undefined ? ({ state: 'ok' } as const) : ({ state: 'degraded', reason: this.#reason } as const);
  }

  /** Writes what is left. */
  async stop(signal: AbortSignal): Promise<void> {
    this.turns.stop();
    if (!signal.aborted) await Promise.race([this.#writing, once(signal, 'abort')]);
    this.#isStopped = true;
    const left = this.#queue.splice(0);
    for (const { bytes } of left) this.#budget.release([], bytes);
    if (left.length > 0) throw new Error(`${left.length} recordings were not written: ${this.#folder.path} is too slow`);
    if (this.#isPruneDue) await this.#prune();
  }

  async #writeAll(): Promise<void> {
    for (let next = this.#queue.shift(); next; next = this.#queue.shift()) {
      const { recording, bytes } = next;
      await this.#folder.write(fileNameOf(recording.turn), linesOf(recording)).then(this.#succeeded, this.#failed);
      this.#budget.release([], bytes);
    }
    this.#writing = undefined;
    this.#pruneSoon();
  }

  /** Once a second at most: the folder may have many files. */
  #pruneSoon(): void {
    if (this.#isPruneDue) return;
    this.#isPruneDue = true;
    const { clock } = this.#context;
    const pause = Math.max(0, this.#prunedAt + PRUNE_PAUSE - clock.monotonic());
    if (pause === 0) void this.#prune();
    else clock.after(pause, () => void this.#prune());
  }

  async #prune(): Promise<void> {
    const { clock } = this.#context;
    this.#isPruneDue = false;
    this.#prunedAt = clock.monotonic();
    await this.#folder.prune(Date.now()).catch(this.#failed);
  }

  readonly #succeeded = (): void => {
    this.#reason = undefined;
  };

  /** A failure is logged at most once a minute, with how many there were. */
  readonly #failed = (error: Error): void => {
    const { clock, entry } = this.#context;
    this.#failures++;
    this.#reason = `recordings cannot be written: ${error.message}; check ${entry}.path`;
    const now = clock.monotonic();
    if (now - this.#loggedAt < LOG_PAUSE) return;
    this.#loggedAt = now;
    this.#log.warn(
      { err: error, failures: this.#failures, path: this.#folder.path },
      `recordings cannot be written; check ${entry}.path`,
    );
  };
}
