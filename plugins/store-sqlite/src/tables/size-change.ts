/** A change in the bytes that a project takes beside its sessions. */
export interface SizeChange {
  readonly project: string;
  readonly bytes: number;
}
