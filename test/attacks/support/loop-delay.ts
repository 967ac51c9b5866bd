import { LOOP_WATCH, LOOP_WATCH_FILES, stallsOf } from '../../chaos/mutations/loop-watch.js';
import type { ServerProcess } from './server-process.js';

/** The configuration of a plugin that measures how long the event loop of its server is held. */
export const LOOP_DELAY = `plugins:\n${LOOP_WATCH}`;

export const LOOP_DELAY_FILES = LOOP_WATCH_FILES;

/**
 * The longest time in milliseconds that the event loop was held since the last call; what other
 * processes took is not counted, nor what was too short to matter.
 */
export async function longestDelay(server: ServerProcess): Promise<number> {
  return Math.max(0, ...(await stallsOf(server)).map(({ held }) => held));
}
