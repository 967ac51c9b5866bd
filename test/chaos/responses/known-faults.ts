/**
 * What the server is known to do wrong, one switch each. While a switch is on, the game leaves out
 * what would show the fault; whoever mends it turns the switch off, and deletes it.
 */
export const KNOWN = {
  /** `store: false` with tools of both kinds in one turn: calls and results are repeated. */
  mixedUnstored: true,
  /** A response that is cancelled or deleted during its commit is kept in its conversation. */
  cancelDuringCommit: true,
  /** SIGTERM ends turns that have no reader. */
  readerlessDrain: true,
  /** `/v1/live` never recovers from the deletion of its last response. */
  liveForgets: true,
  /** `/v1/live` continues a named conversation as a copy. */
  liveNamed: true,
  /** A reload that swaps the order of the transports loses responses and their events. */
  swappedTransports: true,
  /** A chain's session stays when all of its responses are deleted. */
  chainSessionsStay: true,
  /** A stored response that failed or was cancelled is not there after a restart. */
  failedAfterRestart: true,
} as const;
