import { ConfigError, type Fault, type HostErrorCode } from '../base/errors.js';
import type { ConfigPath, PluginIdentity, Problem } from '../base/problem.js';
import type { ConfigSource } from './config-source.js';

/** Collects all mistakes of a file, so that they are reported together. */
export class Problems {
  readonly #source: ConfigSource;
  readonly #found: Problem[] = [];

  constructor(source: ConfigSource) {
    this.#source = source;
    for (const fault of source.faults) this.#found.push({ file: source.shown, ...fault });
  }

  get any(): boolean {
    return this.#found.length > 0;
  }

  /**
   * @param at whether the mistake is in the key at the path or in its value: the reported position.
   */
  add(path: ConfigPath, { code, message }: Fault, at: 'key' | 'value' = 'key', plugin?: PluginIdentity): void {
    const position = this.#source.position(path, at);
    const about = plugin && identityFor(code, message, plugin);
    this.#found.push({ file: this.#source.shown, position, path, code, message, plugin: about });
  }

  /** All problems as one error, or undefined if there are none. */
  get error(): ConfigError | undefined {
    return this.any ? new ConfigError(this.#found) : undefined;
  }

  /** @throws ConfigError */
  throwIfAny(): void {
    if (this.error) throw this.error;
  }
}

/** Mistakes of a plugin, not of its configuration: their messages show the plugin's path. */
const OF_PLUGIN = new Set<HostErrorCode>([
  'CHECK_FAILED',
  'CHECK_RESULT',
  'DEFAULT_INVALID',
  'POINT_NEEDED',
  'REGISTER_FAILED',
  'REGISTER_TIMED_OUT',
]);

function identityFor(code: HostErrorCode, message: string, { name, version, path }: PluginIdentity): Problem['plugin'] {
  return OF_PLUGIN.has(code) && !message.includes(path) ? { name, version, path } : { name, version };
}
