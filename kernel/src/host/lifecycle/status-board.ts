import { hostError } from '../base/errors.js';
import { KERNEL } from '../base/kernel-package.js';
import type { EntryReport, EntryStatus, HostPhase, HostView } from '../base/status.js';
import type { Lifecycle } from '../plugin/plugin.js';
import { healthOf } from './entry-health.js';

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

type StatusReport = Pick<EntryReport, 'entry' | 'status' | 'reason'>;

/** What the host knows of an entry besides its status. */
export interface EntryDetails extends Pick<EntryReport, 'optional' | 'plugin' | 'version'> {
  /** Undefined if it is not registered. */
  readonly lifecycle: Lifecycle | undefined;
}

/** The states of the server and of its entries. The host writes, everything else reads. */
export class StatusBoard implements HostView {
  readonly version = KERNEL.version;
  readonly #stopRequest = new AbortController();
  #phase: HostPhase = 'starting';
  #reports = new Map<string, StatusReport>();
  #literals: ReadonlyMap<string, string>;
  /** The details of the entries in force, by their ids. */
  #details: () => ReadonlyMap<string, EntryDetails> = () => new Map();
  #redact: (text: string) => string = (text) => text;

  constructor(literals: ReadonlyMap<string, string> = new Map()) {
    this.#literals = literals;
  }

  /**
   * Adds details to the reports.
   * @param details returns those of the entries in force.
   * @param redact replaces secrets: programs show reports to people.
   */
  describeWith(details: () => ReadonlyMap<string, EntryDetails>, redact: (text: string) => string): void {
    this.#details = details;
    this.#redact = redact;
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
    const details = this.#details();
    const redacted = (text: string | undefined) => text && this.#redact(text);
    return [...this.#reports.values()].map((report) => {
      const { optional = false, plugin, version, lifecycle } = details.get(report.entry) ?? {};
      return {
        ...report,
        reason: redacted(report.reason),
        optional,
        plugin,
        version,
        get health() {
          const health = report.status === 'running' && lifecycle ? healthOf(lifecycle) : undefined;
          return health && { ...health, reason: redacted(health.reason) };
        },
      };
    });
  }

  literal(section: string): string | undefined {
    return this.#literals.get(section);
  }

  get(entry: string): EntryStatus | undefined {
    return this.#reports.get(entry)?.status;
  }

  add(entry: string, status: 'registered' | 'disabled' | 'running', reason?: string): void {
    this.#reports.set(entry, { entry, status, reason });
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
