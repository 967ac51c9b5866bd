import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Message } from '@plugboard/kernel';
import type {
  IdempotencyRecord,
  InterruptedTurn,
  Metadata,
  SessionId,
  StoredApproval,
  StoredDocument,
  Summary,
} from '@plugboard/kernel/contracts';

/** A stored session. Times are milliseconds since 1970. */
export interface Session {
  readonly id: SessionId;
  /** The version before its first turn: above that of a deleted session with the same key. */
  readonly base: number;
  readonly createdAt: number;
  updatedAt: number;
  user: string | undefined;
  title: string | undefined;
  metadata: Metadata;
  turns: (readonly Message[])[];
  /** By the numbers of the turns. */
  records: Record<number, string>;
  summary: Summary | undefined;
}

/** A value of `ctx.state`. */
export interface PluginValue {
  readonly text: string;
  /** Absent: it does not expire. */
  readonly until?: number;
}

/** Everything that the store keeps, by key. `until` is when a value expires. */
export class State {
  sessions = new Map<string, Session>();
  tombstones = new Map<string, { readonly version: number; readonly until: number }>();
  begun = new Map<string, InterruptedTurn>();
  /** The opaque ids of what sessions belong to, which are in no list. */
  parents = new Map<string, string>();
  calls = new Map<string, { readonly messages: readonly Message[]; readonly until: number }>();
  documents = new Map<string, StoredDocument>();
  /** In the order of their requests. */
  approvals = new Map<string, StoredApproval>();
  answers = new Map<string, { readonly record: IdempotencyRecord; readonly until: number }>();
  /** What plugins keep in `ctx.state`, by entry and key. */
  values = new Map<string, Map<string, PluginValue>>();

  copy(): State {
    return Object.assign(new State(), structuredClone({ ...this }));
  }
}

/** Reads and writes the state as one JSON file. */
export class StateFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async read(): Promise<State> {
    const state = new State();
    try {
      const stored = JSON.parse(await readFile(this.#path, 'utf8'));
      for (const key of Object.keys(state)) Reflect.set(state, key, new Map(stored[key]));
      state.values = new Map(stored.values.map(([entry, own]: [string, [string, PluginValue][]]) => [entry, new Map(own)]));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    return state;
  }

  /** Replaces the file at once: after a crash it has the old or the new content, never a part. */
  async write(state: State): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true });
    const maps = Object.fromEntries(Object.entries(state).map(([key, map]) => [key, [...map]]));
    maps.values = [...state.values].map(([entry, own]) => [entry, [...own]]);
    const file = await open(`${this.#path}.new`, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify(maps));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${this.#path}.new`, this.#path);
    // Only now does a crash of the machine leave the new name, too.
    const folder = await open(dirname(this.#path));
    await folder.sync().finally(() => folder.close());
  }
}
