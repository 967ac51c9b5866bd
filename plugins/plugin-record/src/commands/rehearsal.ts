import { join } from 'node:path';
import type { Attempt, Recording } from '../format/recording.js';
import { CHANGE_KINDS, type Change, type ChangeKind } from '../replay/compare.js';
import { isRefused } from '../replay/outside.js';
import type { Replayed } from '../replay/replay-server.js';
import { asUnreadable, isGone, loadRecording } from './load-recording.js';

/** Turns that are run at the same time where models answer: each waits for its model. */
const MAX_LIVE = 4;

/** A recording that cannot be read or replayed. */
export interface FailedRecording {
  readonly file: string;
  /** A clause about the file. */
  readonly reason: string;
}

export interface ChangedTurn {
  readonly file: string;
  readonly turn: string;
  readonly agent: string;
  readonly changes: readonly Change[];
}

export interface RehearsalOptions {
  readonly folder: string;
  /** Names of files, the newest first. */
  readonly names: readonly string[];
  /** How many turns are rehearsed. */
  readonly last: number;
  readonly agent: string | undefined;
  readonly isLive: boolean;
  replay(recording: Recording): Promise<Replayed>;
  /** A turn was replayed. @param attempts at models, of the replay. */
  onReplayed(recorded: Recording, attempts: readonly Attempt[]): Promise<void>;
  onFailed(failed: FailedRecording): void;
}

/** Runs many recorded turns again, and counts what changed. */
export class Rehearsal {
  turns = 0;
  same = 0;
  /** Turns that the server refused before a model answered: they are not among `turns`. */
  refused = 0;
  /** The agents of the recordings that were read. */
  readonly agents = new Set<string>();
  readonly changed: ChangedTurn[] = [];
  readonly failed: FailedRecording[] = [];
  readonly #options: RehearsalOptions;

  constructor(options: RehearsalOptions) {
    this.#options = options;
  }

  /** In how many turns each kind of change was found. */
  get kinds(): Partial<Record<ChangeKind, number>> {
    const counts: Partial<Record<ChangeKind, number>> = {};
    for (const kind of CHANGE_KINDS) {
      const turns = this.changed.filter(({ changes }) => changes.some((change) => change.kind === kind)).length;
      if (turns > 0) counts[kind] = turns;
    }
    return counts;
  }

  async run(): Promise<void> {
    const left = this.#options.names.values();
    const workers = this.#options.isLive ? MAX_LIVE : 1;
    await Promise.all(Array.from({ length: workers }, () => this.#work(left)));
  }

  /** @param left shared by the workers. */
  async #work(left: Iterable<string>): Promise<void> {
    for (const name of left) {
      if (this.turns >= this.#options.last) return;
      await this.#rehearse(name);
    }
  }

  async #rehearse(name: string): Promise<void> {
    const { folder, agent, last, replay, onReplayed, onFailed } = this.#options;
    const file = join(folder, name);
    try {
      const recording = await loadRecording(file);
      const { id, agent: recorded } = recording.turn;
      this.agents.add(recorded);
      if ((agent !== undefined && recorded !== agent) || this.turns >= last) return;
      if (isRefused(recording)) {
        this.refused++;
        return;
      }
      this.turns++;
      const { changes, attempts } = await replay(recording);
      await onReplayed(recording, attempts);
      if (changes.length === 0) this.same++;
      else this.changed.push({ file, turn: id, agent: recorded, changes });
    } catch (error) {
      if (isGone(error)) return; // a running server has deleted one of its oldest
      this.turns++;
      const failed = { file, reason: asUnreadable(error).message };
      this.failed.push(failed);
      onFailed(failed);
    }
  }
}
