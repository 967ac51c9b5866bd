import { ConfigError, type Fault, type HostErrorCode } from '../base/errors.js';
import type { ConfigPath, PluginIdentity, Problem } from '../base/problem.js';
import type { Reference } from '../options/variables.js';
import type { ConfigSource } from './config-source.js';

/** Characters from which on the text of a variable is also replaced without quotes around it. */
const MIN_PART = 4;

/** Collects all mistakes of a file, so that they are reported together. */
export class Problems {
  readonly #source: ConfigSource;
  readonly #found: Problem[] = [];
  /** The variables of the file, with their places in it. */
  readonly #references: Reference[];

  /** @param earlier the problems of the same file in an earlier phase. */
  constructor(source: ConfigSource, earlier?: Problems) {
    this.#source = source;
    this.#references = earlier === undefined ? [] : [...earlier.#references];
    for (const fault of source.faults) this.#found.push({ file: source.shown, ...fault });
  }

  get any(): boolean {
    return this.#found.length > 0;
  }

  /** @param at whether the position of the key or that of the value is reported. */
  add(path: ConfigPath, { code, message }: Fault, at: 'key' | 'value' = 'key', plugin?: PluginIdentity): void {
    const position = this.#source.position(path, at);
    const about = plugin && identityFor(code, message, plugin);
    this.#found.push({
      file: this.#source.shown,
      position,
      path,
      code,
      message: this.withoutValues(path, message),
      plugin: about,
    });
  }

  /** Adds the variables of a part of the file: no message about it shows their values. */
  conceal(path: ConfigPath, references: readonly Reference[]): void {
    for (const reference of references) {
      if (reference.from !== 'environment') continue;
      this.#references.push({ ...reference, path: [...path, ...reference.path] });
    }
  }

  /**
   * Puts `${NAME}` where a message about a place shows the value of a variable there: somebody may
   * have put a secret into the wrong option, which its message then quotes (S-62).
   */
  withoutValues(path: ConfigPath, message: string): string {
    const here = this.#references.filter((reference) => isWithin(reference.path, path) || isWithin(path, reference.path));
    // The longest first: one value may be a part of another.
    return here
      .toSorted((a, b) => b.text.length - a.text.length)
      .reduce((text, reference) => {
        const name = `\${${reference.name}}`;
        const quoted = text.replaceAll(`"${reference.text}"`, () => `"${name}"`);
        return reference.text.length < MIN_PART ? quoted : quoted.replaceAll(reference.text, () => name);
      }, message);
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

/** Whether a path is at another one or below it. */
function isWithin(path: ConfigPath, other: ConfigPath): boolean {
  return other.every((step, index) => path[index] === step);
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
