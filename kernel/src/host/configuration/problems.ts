import { ConfigError, type ConfigPath, type PluginIdentity, type Problem } from '../base/errors.js';
import type { ConfigFile } from './config-file.js';

/** Gathers everything that is wrong with a file, so that one look at it mends it all. */
export class Problems {
  readonly #file: ConfigFile;
  readonly #found: Problem[] = [];

  constructor(file: ConfigFile) {
    this.#file = file;
    for (const { path, position, message } of file.faults) this.#found.push({ file: file.shown, position, path, message });
  }

  get any(): boolean {
    return this.#found.length > 0;
  }

  /** @param at whether the message is about the key at the path or about its value. */
  add(path: ConfigPath, message: string, at: 'key' | 'value' = 'key', plugin?: Pick<PluginIdentity, 'name' | 'version'>): void {
    this.#found.push({ file: this.#file.shown, position: this.#file.position(path, at), path, message, plugin });
  }

  /** All of them as one error, or undefined where there is none. */
  get error(): ConfigError | undefined {
    return this.any ? new ConfigError(this.#found) : undefined;
  }

  /** @throws ConfigError */
  throwIfAny(): void {
    if (this.error) throw this.error;
  }
}
