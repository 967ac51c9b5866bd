/** The right to do something alone, over all servers on one store. @public */
export interface Exclusive {
  /** Aborts when the right is lost, because this server's lease ended. Its reason says so. */
  readonly signal: AbortSignal;
  /** Gives the right back. Never rejects for a right that is lost already. */
  release(): Promise<void>;
}
