import { hostError } from '../base/errors.js';
import type { EntryReport, EntryStatus, HostPhase, HostView } from '../base/status.js';

/** The states that may follow each. */
const NEXT: Readonly<Record<EntryStatus, readonly EntryStatus[]>> = {
  registered: ['starting'],
  disabled: [],
  starting: ['running', 'failed', 'stopping'],
  running: ['stopping'],
  stopping: ['stopped', 'failed'],
  stopped: [],
  failed: ['disabled'],
};

/** The states of the server and of its entries. The host writes, everything else reads. */
export class StatusBoard implements HostView {
  readonly #stopRequest = new AbortController();
  #phase: HostPhase = 'starting';
  #reports = new Map<string, EntryReport>();
  #literals: ReadonlyMap<string, string>;

  constructor(literals: ReadonlyMap<string, string>) {
    this.#literals = literals;
  }

  get phase(): HostPhase {
    return this.#phase;
  }

  get stopRequested(): AbortSignal {
    return this.#stopRequest.signal;
  }

  enter(phase: HostPhase): void {
    this.#phase = phase;
    if (phase === 'stopping') this.#stopRequest.abort();
  }

  entries(): readonly EntryReport[] {
    return [...this.#reports.values()];
  }

  literal(section: string): string | undefined {
    return this.#literals.get(section);
  }

  get(entry: string): EntryStatus | undefined {
    return this.#reports.get(entry)?.status;
  }

  /** Adds an entry. */
  add(entry: string, status: 'registered' | 'disabled', reason?: string): void {
    this.#reports.set(entry, { entry, status, reason });
  }

  /** Adds an entry that runs already. */
  addRunning(entry: string): void {
    this.#reports.set(entry, { entry, status: 'running' });
  }

  /** Replaces all entries by those of another board. */
  adopt(other: StatusBoard): void {
    this.#reports = new Map(other.#reports);
    this.#literals = other.#literals;
  }

  /** @throws HostError if the entry cannot change to that state: a defect of the host. */
  set(entry: string, status: EntryStatus, reason?: string): void {
    const from = this.#reports.get(entry)?.status;
    if (from === undefined || !NEXT[from].includes(status)) {
      throw hostError('STATUS_IMPOSSIBLE', entry, from ?? 'nothing', status);
    }
    this.#reports.set(entry, { entry, status, reason });
  }
}
