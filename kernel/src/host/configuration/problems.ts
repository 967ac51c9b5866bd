import { ConfigError, type Fault } from '../base/errors.js';
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
  add(path: ConfigPath, fault: Fault, at: 'key' | 'value' = 'key', plugin?: Pick<PluginIdentity, 'name' | 'version'>): void {
    const { code, message } = fault;
    this.#found.push({ file: this.#source.shown, position: this.#source.position(path, at), path, code, message, plugin });
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
