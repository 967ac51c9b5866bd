import { definePlugin, type SessionStore, SessionStores } from '@plugboard/kernel';
import sqlite from '@plugboard/store-sqlite';

/**
 * What becomes of a store call that is to fail:
 *
 * - `refused`: it does not write, and fails;
 * - `unsaid`: it does what it was asked for, and reports a failure all the same, as a connection
 *   does that breaks before the answer;
 * - `stuck`: it does not write, and never answers;
 * - `mute`: it does what it was asked for, and never says so;
 * - `late`: it neither writes nor answers until `release`.
 */
export type Fault = 'refused' | 'unsaid' | 'stuck' | 'mute' | 'late';
export const FAULTS: readonly Fault[] = ['refused', 'unsaid', 'stuck', 'mute', 'late'];

/** The one call that is to fail next. The test says which, and the store below asks. */
class FaultPlan {
  /** The operations that were called since `arm`. */
  calls: string[] = [];
  #at = 0;
  #fault: Fault | undefined;
  #struck = Promise.withResolvers<string>();
  #released = Promise.withResolvers<void>();

  /** From here on the call of that number, counted from 1, fails. */
  arm(at: number, fault: Fault): void {
    this.calls = [];
    this.#at = at;
    this.#fault = fault;
    this.#struck = Promise.withResolvers();
    this.#released = Promise.withResolvers();
  }

  disarm(): void {
    this.#fault = undefined;
  }

  /** Resolves with the operation when the fault has struck. */
  get struck(): Promise<string> {
    return this.#struck.promise;
  }

  /** Lets a late call do what it was asked for. */
  release(): void {
    this.#released.resolve();
  }

  async apply<T>(operation: string, work: () => Promise<T>): Promise<T> {
    if (this.#fault === undefined || this.calls.push(operation) !== this.#at) return work();
    const fault = this.#fault;
    const released = this.#released.promise;
    this.#struck.resolve(operation);
    if (fault === 'unsaid' || fault === 'mute') await work();
    if (fault === 'refused' || fault === 'unsaid') throw new Error(`the store fails at ${operation}`);
    await (fault === 'late' ? released : new Promise(() => {}));
    return work();
  }
}

export const faults = new FaultPlan();

/** The calls that belong to turns; what else a store is asked for works. */
const OPERATIONS = ['load', 'version', 'begin', 'commit', 'abandon'] as const;

/** The SQLite store, but for the calls that the plan makes fail. */
export default definePlugin({
  ...sqlite,
  name: 'faulty-store',
  summary: 'A SQLite store that fails on demand',
  register: (ctx) =>
    sqlite.register({
      ...ctx,
      contribute: (point, value, ...more) =>
        ctx.contribute(point, point.id === SessionStores.id ? (faulty(value as SessionStore) as typeof value) : value, ...more),
    }),
});

function faulty(store: SessionStore): SessionStore {
  const { idempotency, pendingToolCalls } = store;
  const wrapped: Record<string, unknown> = {
    idempotency: {
      claim: (...claimed) => faults.apply('idempotency.claim', () => idempotency.claim(...claimed)),
      release: (key) => faults.apply('idempotency.release', () => idempotency.release(key)),
      put: (record) => faults.apply('idempotency.put', () => idempotency.put(record)),
    } satisfies SessionStore['idempotency'],
    pendingToolCalls: {
      save: (owner, keys, messages) => faults.apply('pendingToolCalls.save', () => pendingToolCalls.save(owner, keys, messages)),
      find: (owner, keys) => faults.apply('pendingToolCalls.find', () => pendingToolCalls.find(owner, keys)),
      load: (owner, key) => faults.apply('pendingToolCalls.load', () => pendingToolCalls.load(owner, key)),
    } satisfies SessionStore['pendingToolCalls'],
  };
  for (const operation of OPERATIONS) {
    const call = store[operation].bind(store) as (...args: unknown[]) => Promise<unknown>;
    wrapped[operation] = (...args: unknown[]) => faults.apply(operation, () => call(...args));
  }
  return new Proxy(store, {
    get: (target, name) => {
      const own = typeof name === 'string' ? wrapped[name] : undefined;
      const value: unknown = own ?? Reflect.get(target, name, target);
      return own === undefined && typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
