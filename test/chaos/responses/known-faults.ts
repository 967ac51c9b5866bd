/**
 * What the server is known to do wrong, one switch each. While a switch is on, the game leaves out
 * what would show the fault; whoever mends it deletes the switch, and what it leaves out.
 */
export const KNOWN = {
  /**
   * On a socket, the last response of a lane cannot be continued by its id if it ran in a named
   * conversation without being stored.
   */
  unstoredInSession: true,
  /** A client that did not ask for `svc:` events sees gaps where they are left out. */
  numbersOfExtensions: true,
} as const;
