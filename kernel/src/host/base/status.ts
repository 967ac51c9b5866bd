/** The state of an entry. Only the host changes it. @public */
export type EntryStatus = 'registered' | 'disabled' | 'starting' | 'running' | 'stopping' | 'stopped' | 'failed';

/** The state of the whole server. @public */
export type HostPhase = 'starting' | 'running' | 'stopping' | 'stopped';

/** The state of one entry of the configuration. @public */
export interface EntryReport {
  readonly entry: string;
  readonly status: EntryStatus;
  /** Why the entry is `disabled` or `failed`. */
  readonly reason?: string | undefined;
  /** Whether the server can run without it. */
  readonly optional: boolean;
  /** The package of its plugin. Undefined if that was not loaded. */
  readonly plugin?: string | undefined;
  readonly version?: string | undefined;
  /** How a running entry works. Undefined if its plugin does not say. */
  readonly health?: EntryHealth | undefined;
}

/**
 * How a running entry works: as it should, with a part missing, or not at all. `reason` says why
 * and what to do, in one line without a secret.
 *
 * @public
 */
export interface EntryHealth {
  readonly state: 'ok' | 'degraded' | 'failed';
  readonly reason?: string | undefined;
}

/** What a plugin can ask about its server. @public */
export interface HostView {
  /** The version of Plugboard. */
  readonly version: string;
  readonly phase: HostPhase;
  /** Aborted when the server is asked to stop, before the first entry is. */
  readonly stopRequested: AbortSignal;
  entries(): readonly EntryReport[];
  /** The word in place of a section's entries, for example `open` in `auth: open`. */
  literal(section: string): string | undefined;
}
