import type { PluginContext, Principal } from '@plugboard/kernel';
import { type Budget, DEFAULT_PROJECT, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { RuntimeSettings } from '../../config.js';

/** How the permits are shared. */
interface TurnShares {
  /** How many permits a project may have at once. Further ones of it wait. */
  projectShare(project: string): number;
  /** How many permits one identified caller may have at once. Further ones of it wait. */
  readonly callerShare: number;
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
  /** The oldest first. */
  readonly waiting: Waiter[];
}

interface Project {
  readonly name: string;
  share: number;
  taken: number;
  waitingCount: number;
  readonly callers: Map<string, Caller>;
}

/**
 * Bounds the turns of the process: a counting semaphore with a bounded queue, both shared fairly
 * between projects, then between the callers of a project (S-41).
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
export class TurnLimiter {
  readonly #running: Budget;
  readonly #queue: Budget;
  #shares: TurnShares;
  /** Projects that have or wait for a permit, in the order in which they got their last one. */
  readonly #projects = new Map<string, Project>();

  constructor(@inject(CONTEXT) { config, budgets }: PluginContext<RuntimeSettings>) {
    const { runningTurns, queuedTurns } = config.limits;
    const turns = { unit: 'turns' };
    this.#running = budgets.create({ ...turns, name: 'running turns', limit: runningTurns, setting: 'limits.runningTurns' });
    this.#queue = budgets.create({ ...turns, name: 'queued turns', limit: queuedTurns, setting: 'limits.queuedTurns' });
    this.#shares = sharesOf(config);
  }

  /**
   * Takes a permit for a caller, which gives it back with `release`. Returns `undefined` if one was
   * free.
   *
   * @throws TurnError `rate_limited` beyond the limit of the credential, `overloaded` if the queue
   *   is full; rejects with it if a newcomer takes its slot in the queue, and with the signal's
   *   reason if it aborts first.
   */
  acquire(principal: Principal, signal: AbortSignal): Promise<void> | undefined {
    const caller = this.#callerOf(principal);
    const most = principal.tokenId === undefined ? undefined : principal.limits?.runningTurns;
    if (most !== undefined && caller.taken + caller.waiting.length >= most) throw tooManyTurns(most);
    if (isBelowShares(caller) && this.#take(caller)) return undefined;
    if (!this.#makeRoom(caller)) {
      this.#forget(caller);
      throw queueIsFull();
    }
    return this.#wait(caller, signal);
  }

  /** Gives a permit back, to a waiter if there is one. */
  release(principal: Principal): void {
    const caller = this.#callerOf(principal);
    caller.taken--;
    caller.project.taken--;
    this.#running.release([], 1);
    this.#forget(caller);
    if (this.#queue.used > 0) this.#grantNext();
  }

  /**
   * Changes the limits. Owners beyond them keep their permits; waiters get the permits that this
   * adds.
   */
  reconfigure(config: RuntimeSettings): void {
    this.#shares = sharesOf(config);
    this.#running.resize(config.limits.runningTurns);
    this.#queue.resize(config.limits.queuedTurns);
    for (const project of this.#projects.values()) {
      project.share = this.#shares.projectShare(project.name);
      for (const caller of project.callers.values()) {
        if (caller.key !== '') caller.share = this.#shares.callerShare;
      }
    }
    while (this.#grantNext());
  }

  /** Callers without an identity are one, which has no share of its own. */
  #callerOf({ project: name, tokenId: key }: Principal): Caller {
    let project = this.#projects.get(name);
    if (!project) {
      project = { name, share: this.#shares.projectShare(name), taken: 0, waitingCount: 0, callers: new Map() };
      this.#projects.set(name, project);
    }
    const id = key ?? '';
    let caller = project.callers.get(id);
    if (!caller) {
      const share = key === undefined ? Number.POSITIVE_INFINITY : this.#shares.callerShare;
      caller = { key: id, project, share, taken: 0, waiting: [] };
      project.callers.set(id, caller);
    }
    return caller;
  }

  #take(caller: Caller): boolean {
    if (this.#running.used >= this.#running.limit || !this.#running.reserve([], 1)) return false;
    caller.taken++;
    caller.project.taken++;
    return true;
  }

  #forget({ key, project, taken, waiting }: Caller): void {
    if (taken > 0 || waiting.length > 0) return;
    project.callers.delete(key);
    if (project.callers.size === 0) this.#projects.delete(project.name);
  }

  #wait(caller: Caller, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      caller.waiting.splice(caller.waiting.indexOf(waiter), 1);
      caller.project.waitingCount--;
      this.#queue.release([], 1);
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
    caller.waiting.push(waiter);
    caller.project.waitingCount++;
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    return promise;
  }

  /** Reserves a slot in the queue for the caller, if necessary that of another one. */
  #makeRoom(caller: Caller): boolean {
    if (this.#queue.reserve([], 1)) return true;
    const victim = this.#greediest(caller);
    const newest = victim?.waiting.at(-1);
    if (!victim || !newest) return false;
    newest.reject(queueIsFull());
    this.#forget(victim);
    return this.#queue.reserve([], 1);
  }

  /** The caller whose newest waiter gives way to a newcomer of this one. */
  #greediest(caller: Caller): Caller | undefined {
    const project = greatest(this.#projects.values(), ({ waitingCount }) => waitingCount);
    if (project && project !== caller.project && project.waitingCount > caller.project.waitingCount + 1) {
      return greatest(project.callers.values(), ({ waiting }) => waiting.length);
    }
    const other = greatest(caller.project.callers.values(), ({ waiting }) => waiting.length);
    return other && other.waiting.length > caller.waiting.length + 1 ? other : undefined;
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

/**
 * By default no project and no caller can take every permit: turns are long, and a permit that is
 * taken is not taken back. Where `default` is the only project, the share of a project is
 * everything.
 */
function sharesOf({ limits, projects }: RuntimeSettings): TurnShares {
  const single = Object.keys(projects).every((name) => name === DEFAULT_PROJECT);
  const quarters = (count: number) => Math.ceil((limits.runningTurns * count) / 4);
  const perProject = limits.runningTurnsPerProject ?? quarters(single ? 4 : 3);
  return {
    projectShare: (project) => (Object.hasOwn(projects, project) ? projects[project]?.runningTurns : undefined) ?? perProject,
    callerShare: limits.runningTurnsPerCaller ?? quarters(single ? 3 : 2),
  };
}

function tooManyTurns(most: number): TurnError {
  const turns = most === 1 ? '1 turn' : `${most} turns`;
  return new TurnError('rate_limited', `This credential may run ${turns} at once; try again when one has ended.`, {
    retryAfter: 1,
  });
}

function queueIsFull(): TurnError {
  return new TurnError(
    'overloaded',
    'The server is at its limit of concurrent turns (`limits.runningTurns`), and its queue is full (`limits.queuedTurns`); try again in a moment.',
    { retryAfter: 1 },
  );
}

function isBelowShares({ taken, share, project }: Caller): boolean {
  return taken < share && project.taken < project.share;
}

/** The caller of a project that gets the next permit; undefined if none waits or may have it. */
function nextCaller({ taken, share, waitingCount, callers }: Project): Caller | undefined {
  if (waitingCount === 0 || taken >= share) return undefined;
  return smallest(callers.values(), (caller) =>
    caller.waiting.length > 0 && caller.taken < caller.share ? caller.taken : undefined,
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
