/**
 * An output item while it is being written. Its methods return events as JSON texts, in the order
 * in which they are sent.
 */
export interface OutputItem {
  /** Its index in the response's `output`. */
  readonly index: number;
  /** The item as it stands now, as JSON. */
  json(): string;
}

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';
