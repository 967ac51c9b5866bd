import { reasonOf } from '../base/errors.js';
import type { EntryHealth } from '../base/status.js';
import type { Lifecycle } from '../plugin/plugin.js';

/** Asks a running entry for its health. One that cannot say has failed. */
export function healthOf(lifecycle: Lifecycle): EntryHealth | undefined {
  if (lifecycle.health === undefined) return undefined;
  try {
    const health: unknown = lifecycle.health();
    // A store that is its own lifecycle has another health, which is that of the store.
    if (health instanceof Promise) return void health.catch(() => undefined);
    const { state, reason } = health as EntryHealth;
    if (!['ok', 'degraded', 'failed'].includes(state)) throw new Error(`its health is ${JSON.stringify(state)}`);
    return { state, reason };
  } catch (error) {
    return { state: 'failed', reason: `health() failed: ${reasonOf(error)}` };
  }
}
