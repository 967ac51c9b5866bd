import type { Budget, TurnError } from '@plugboard/kernel/contracts';

/** Who takes a permit: a tenant, and one of its callers. */
export interface PermitOwner {
  readonly project: string;
  /** Identifies the caller within its project; undefined if callers cannot be told apart. */
  readonly caller: string | undefined;
}

/** How the permits are shared. */
interface PermitShares {
  /** How many permits a project may have at once. Further ones of it wait. */
  projectShare(project: string): number;
  /** How many permits one identified caller may have at once. Further ones of it wait. */
  readonly callerShare: number;
}

/** How many permits there are. */
export interface PermitLimits extends PermitShares {
  readonly permits: number;
  readonly queueLength: number;
}

export interface ConcurrencyLimiterOptions extends PermitShares {
  /** The permits. */
  readonly running: Budget;
  /** The slots of the queue. Further waiters are rejected. */
  readonly queue: Budget;
  /** Makes the error for a waiter that is rejected. */
  rejection(): TurnError;
}

interface Waiter {
  grant(): void;
  reject(error: TurnError): void;
}

interface Caller {
  readonly key: string;
  readonly project: Project;
  share: number;
  taken: number;
  readonly waiting: Set<Waiter>;
}

interface Project {
  readonly name: string;
  share: number;
  taken: number;
  waitingCount: number;
  readonly callers: Map<string, Caller>;
}

/**
 * A counting semaphore with a bounded queue, both shared fairly between projects, then between the
 * callers of a project (S-41).
 *
 * 1. A permit is granted at once while there is one, and the project and the caller are below their
 *    shares.
 * 2. Otherwise the turn waits. A permit that becomes free goes to the project that has the fewest
 *    among those that wait, there to the caller that has the fewest, and there to the first in
 *    the queue.
 * 3. When the queue is full, a newcomer may take the slot of another waiter, which is then
 *    rejected. The project with the most waiters loses one if it has at least two more than the
 *    newcomer's project: the newest waiter of its caller with the most. If not, the same holds
 *    between the callers of the newcomer's own project. If that does not help either, the newcomer
 *    is rejected.
 */
export class ConcurrencyLimiter {
  #options: ConcurrencyLimiterOptions;
  /** Projects that have or wait for a permit, in the order in which they got their last one. */
  readonly #projects = new Map<string, Project>();

  constructor(options: ConcurrencyLimiterOptions) {
    this.#options = options;
  }

  /**
   * Takes a permit, which the caller gives back with `release` of the same owner. Returns
   * `undefined` if one was free.
   *
   * @throws the rejection if the queue is full; rejects with it if a newcomer takes its slot in
   *   the queue, and with the signal's reason if it aborts first.
   */
  acquire(owner: PermitOwner, signal: AbortSignal): Promise<void> | undefined {
    const caller = this.#callerOf(owner);
    if (isBelowShares(caller) && this.#take(caller)) return undefined;
    if (!this.#makeRoom(caller)) {
      this.#forget(caller);
      throw this.#options.rejection();
    }
    return this.#wait(caller, signal);
  }

  /** Gives a permit back, to a waiter if there is one. */
  release(owner: PermitOwner): void {
    const caller = this.#callerOf(owner);
    caller.taken--;
    caller.project.taken--;
    this.#options.running.release([], 1);
    this.#forget(caller);
    if (this.#options.queue.used > 0) this.#grantNext();
  }

  /**
   * Changes the limits. Owners beyond them keep their permits; waiters get the permits that this
   * adds.
   */
  resize({ permits, queueLength, ...shares }: PermitLimits): void {
    const { running, queue } = this.#options;
    this.#options = { ...this.#options, ...shares };
    running.resize(permits);
    queue.resize(queueLength);
    for (const project of this.#projects.values()) {
      project.share = shares.projectShare(project.name);
      for (const caller of project.callers.values()) {
        if (caller.key !== '') caller.share = shares.callerShare;
      }
    }
    while (this.#grantNext());
  }

  #callerOf({ project: name, caller: key }: PermitOwner): Caller {
    let project = this.#projects.get(name);
    if (!project) {
      project = { name, share: this.#options.projectShare(name), taken: 0, waitingCount: 0, callers: new Map() };
      this.#projects.set(name, project);
    }
    const id = key ?? '';
    let caller = project.callers.get(id);
    if (!caller) {
      const share = key === undefined ? Number.POSITIVE_INFINITY : this.#options.callerShare;
      caller = { key: id, project, share, taken: 0, waiting: new Set() };
      project.callers.set(id, caller);
    }
    return caller;
  }

  #take(caller: Caller): boolean {
    const { running } = this.#options;
    if (running.used >= running.limit || !running.reserve([], 1)) return false;
    caller.taken++;
    caller.project.taken++;
    return true;
  }

  #forget({ key, project, taken, waiting }: Caller): void {
    if (taken > 0 || waiting.size > 0) return;
    project.callers.delete(key);
    if (project.callers.size === 0) this.#projects.delete(project.name);
  }

  #wait(caller: Caller, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      caller.waiting.delete(waiter);
      caller.project.waitingCount--;
      this.#options.queue.release([], 1);
      signal.removeEventListener('abort', onAbort);
    };
    const waiter: Waiter = {
      grant() {
        leave();
        resolve();
      },
      reject(error) {
        leave();
        reject(error);
      },
    };
    const onAbort = () => {
      leave();
      this.#forget(caller);
      reject(signal.reason);
    };
    caller.waiting.add(waiter);
    caller.project.waitingCount++;
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    return promise;
  }

  /** Reserves a slot in the queue for the caller, if necessary that of another one. */
  #makeRoom(caller: Caller): boolean {
    const { queue } = this.#options;
    if (queue.reserve([], 1)) return true;
    const victim = this.#greediest(caller);
    const newest = victim && [...victim.waiting].at(-1);
    if (!newest) return false;
    newest.reject(this.#options.rejection());
    this.#forget(victim);
    return queue.reserve([], 1);
  }

  /** The caller whose newest waiter gives way to a newcomer of this one. */
  #greediest(caller: Caller): Caller | undefined {
    const project = greatest(this.#projects.values(), ({ waitingCount }) => waitingCount);
    if (project && project !== caller.project && project.waitingCount > caller.project.waitingCount + 1) {
      return greatest(project.callers.values(), ({ waiting }) => waiting.size);
    }
    const other = greatest(caller.project.callers.values(), ({ waiting }) => waiting.size);
    return other && other.waiting.size > caller.waiting.size + 1 ? other : undefined;
  }

  /** Returns whether a waiter got a permit. */
  #grantNext(): boolean {
    const project = smallest(this.#projects.values(), (one) => (nextCaller(one) ? one.taken : undefined));
    const next = project && nextCaller(project);
    const [waiter] = next?.waiting ?? [];
    if (!next || !waiter || !this.#take(next)) return false;
    // To the end: among equals, each gets a permit in turn.
    this.#projects.delete(project.name);
    this.#projects.set(project.name, project);
    project.callers.delete(next.key);
    project.callers.set(next.key, next);
    waiter.grant();
    return true;
  }
}

function isBelowShares({ taken, share, project }: Caller): boolean {
  return taken < share && project.taken < project.share;
}

/** The caller of a project that gets the next permit; undefined if none waits or may have it. */
function nextCaller({ taken, share, waitingCount, callers }: Project): Caller | undefined {
  if (waitingCount === 0 || taken >= share) return undefined;
  return smallest(callers.values(), (caller) =>
    caller.waiting.size > 0 && caller.taken < caller.share ? caller.taken : undefined,
  );
}

function greatest<T>(items: Iterable<T>, measure: (item: T) => number): T | undefined {
  return smallest(items, (item) => -measure(item));
}

/** The first item with the smallest measure. Items without one do not count. */
function smallest<T>(items: Iterable<T>, measure: (item: T) => number | undefined): T | undefined {
  let found: T | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const item of items) {
    const value = measure(item);
    if (value === undefined || value >= least) continue;
    found = item;
    least = value;
  }
  return found;
}
