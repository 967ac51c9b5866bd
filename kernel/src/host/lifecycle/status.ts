/** Where an entry is in its life. Driven by the host alone. */
export type EntryStatus = 'registered' | 'disabled' | 'starting' | 'running' | 'stopping' | 'stopped' | 'failed';

/** Where the whole server is in its life. */
export type HostPhase = 'starting' | 'running' | 'stopping' | 'stopped';

export interface EntryReport {
  readonly entry: string;
  readonly status: EntryStatus;
  /** Why it is `disabled` or `failed`. */
  readonly reason?: string | undefined;
}

/** What a plugin may ask about the server it runs in. */
export interface HostView {
  readonly phase: HostPhase;
  entries(): readonly EntryReport[];
  /** The word that stands in the file in place of a section's entries, for example `open` in `auth: open`. */
  literal(section: string): string | undefined;
}
