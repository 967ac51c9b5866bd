/**
 * How long a turn or a tool may go on after it was aborted, in milliseconds. After that the turn is
 * overdue or the tool abandoned, and what waits for it continues.
 */
export const SETTLE_TIMEOUT = 5_000;
