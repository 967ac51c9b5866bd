/**
 * How long a turn or a tool may go on after it was aborted, in milliseconds. It is abandoned then,
 * and what waits for it continues.
 */
export const SETTLE_TIMEOUT = 5_000;
