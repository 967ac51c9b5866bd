/** The state of an entry. Only the host changes it. */
export type EntryStatus = 'registered' | 'disabled' | 'starting' | 'running' | 'stopping' | 'stopped' | 'failed';

/** The state of the whole server. */
export type HostPhase = 'starting' | 'running' | 'stopping' | 'stopped';

export interface EntryReport {
  readonly entry: string;
  readonly status: EntryStatus;
  /** Why the entry is `disabled` or `failed`. */
  readonly reason?: string | undefined;
}

/** What a plugin can ask about its server. */
export interface HostView {
  readonly phase: HostPhase;
  entries(): readonly EntryReport[];
  /** The word in place of a section's entries, for example `open` in `auth: open`. */
  literal(section: string): string | undefined;
}
