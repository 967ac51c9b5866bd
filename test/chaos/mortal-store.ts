import { isDeepStrictEqual } from 'node:util';
import type { Message, SessionStore } from '@plugboard/kernel';
import type { InterruptedTurn, SessionId, TurnCommit } from '@plugboard/kernel/contracts';
import { CapturedLog, type ManualClock } from '@plugboard/testing';
import { MemoryStore } from '../../plugins/store-memory/src/memory-store.js';

/**
 * One life of a process: its store works until it is killed, and answers nothing any more from then
 * on.
 */
export interface ProcessLife {
  readonly store: SessionStore;
  kill(): void;
}

interface Held {
  readonly life: object;
  apply(): Promise<void>;
  answer(): void;
}

/**
 * What outlives the processes that use it: a store in memory that remembers which turns began, and
 * whose commits can be held up.
 */
export class MortalStore {
  readonly kept: MemoryStore;
  /**
   * User messages of turns that were being committed: only their outcome is unknown
   * of them, where they have failed.
   */
  readonly committing = new Set<string>();
  /** Commits wait, from when this is set. */
  isSlow = false;
  readonly #begun = new Map<string, InterruptedTurn>();
  #held: Held[] = [];

  constructor(clock: ManualClock) {
    const limits = { maxSessions: 1000, maxBytes: 64 * 1024 * 1024 };
    const quotas = { maxSessionsPerProject: limits.maxSessions, maxBytesPerProject: limits.maxBytes };
    this.kept = new MemoryStore({ ttl: 24 * 60 * 60_000, ...limits, ...quotas }, clock, new CapturedLog().logger(clock));
  }

  /** User messages of turns that have begun and whose end has not reached the store. */
  get unended(): readonly string[] {
    return [...this.#begun.values()].map(({ input }) => textOf(input));
  }

  /** What waits is committed. */
  async release(): Promise<void> {
    this.isSlow = false;
    for (const held of this.#held.splice(0)) {
      await held.apply();
      held.answer();
    }
  }

  live(): ProcessLife {
    const life = { isDead: false };
    const never = new Promise<never>(() => {});
    const own: Partial<SessionStore> = {
      begin: async (id, { turnId, input }) => void this.#begun.set(turnId, { id, turnId, input }),
      abandon: async (_, turnId) => void this.#begun.delete(turnId),
      commit: (id, turn) => this.#commit(life, id, turn),
      delete: (id) => {
        for (const [turnId, turn] of this.#begun) if (isDeepStrictEqual(turn.id, id)) this.#begun.delete(turnId);
        return this.kept.delete(id);
      },
      recover: async () => {
        const found = [...this.#begun.values()];
        this.#begun.clear();
        return found;
      },
    };
    const store = new Proxy<SessionStore>(this.kept, {
      get: (kept, name: keyof SessionStore) => {
        const work = own[name] ?? kept[name];
        if (typeof work !== 'function') return work;
        return async (...args: unknown[]) => {
          if (life.isDead) return never;
          const result = await Reflect.apply(work, kept, args);
          return life.isDead ? never : result;
        };
      },
    });
    return {
      store,
      kill: () => {
        life.isDead = true;
        this.#held = this.#held.filter((held) => held.life !== life);
      },
    };
  }

  /** Performs the waiting write without reporting it: as if the process died in between. */
  async applyUntold(): Promise<void> {
    for (const held of this.#held.splice(0)) await held.apply();
  }

  async #commit(life: object, id: SessionId, turn: TurnCommit): Promise<void> {
    this.committing.add(textOf(turn.messages));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const apply = () => this.kept.commit(id, turn).then(() => void this.#begun.delete(turn.turnId ?? ''), reject);
    if (!this.isSlow) {
      await apply();
      resolve();
    } else this.#held.push({ life, apply, answer: resolve });
    await promise;
  }
}

function textOf(messages: readonly Message[]): string {
  return String(messages.find(({ role }) => role === 'user')?.content);
}
