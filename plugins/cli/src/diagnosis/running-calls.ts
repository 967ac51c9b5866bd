import { subscribe } from 'node:diagnostics_channel';
import { CALL_CHANNELS, type PluginCall } from '@plugboard/kernel/internal';

/**
 * The calls into plugins that have not returned. They belong to the process and not to a server: a
 * plugin that ends the process, or blocks it, does so for all servers of the process.
 */
const running = new Set<PluginCall>();
const listeners = new Set<() => void>();

/** The calls that have not returned, the oldest first. Plugins are imported side by side. */
export function runningCalls(): readonly PluginCall[] {
  return [...running];
}

/** Calls `listener` whenever a call begins or ends. @returns what ends that. */
export function onCalls(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

subscribe(CALL_CHANNELS.begin, (call) => {
  running.add(call as PluginCall);
  for (const listener of listeners) listener();
});
subscribe(CALL_CHANNELS.end, (call) => {
  running.delete(call as PluginCall);
  for (const listener of listeners) listener();
});
