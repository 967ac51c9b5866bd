import { channel } from 'node:diagnostics_channel';
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
 * The diagnostics channels of these calls, with a `PluginCall`: when one begins, and when the same
 * one has ended. They tell a program which plugin blocks or ends the process.
 */
export const CALL_CHANNELS = { begin: 'plugboard:plugin-call:begin', end: 'plugboard:plugin-call:end' } as const;

const begin = channel(CALL_CHANNELS.begin);
const end = channel(CALL_CHANNELS.end);

/** Announces that the code of a plugin runs. @returns what announces its end. */
export function beginCall(call: PluginCall): () => void {
  begin.publish(call);
  return () => end.publish(call);
}

/** Announces that a method of an entry's plugin runs. @returns what announces its end. */
export function beginMethod(method: string, entry: string, { name, version, path }: PluginIdentity): () => void {
  return beginCall({ text: `${method}() of ${entry} (${name} ${version}, ${path})`, path, packageName: name });
}
