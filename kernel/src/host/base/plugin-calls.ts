import type { PluginIdentity } from './problem.js';

/** A call into the code of a plugin while the server is composed, started or stopped. */
export interface PluginCall {
  /** `start() of greeters.hello (@you/greeter 1.0.0, /srv/greeter.js)`. */
  readonly text: string;
  /** The module of the plugin. */
  readonly path: string;
  /** The plugin's package; undefined if it has none. */
  readonly packageName: string | undefined;
}

/**
 * The calls that have not returned. They belong to the process and not to a server: a plugin that
 * ends the process, or blocks it, does so for all servers of the process.
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

/** Notes that the code of a plugin runs. @returns what notes its end. */
export function beginCall(call: PluginCall): () => void {
  running.add(call);
  for (const listener of listeners) listener();
  return () => {
    running.delete(call);
    for (const listener of listeners) listener();
  };
}

/** Notes that a method of an entry's plugin runs. @returns what notes its end. */
export function beginMethod(method: string, entry: string, { name, version, path }: PluginIdentity): () => void {
  return beginCall({ text: `${method}() of ${entry} (${name} ${version}, ${path})`, path, packageName: name });
}
