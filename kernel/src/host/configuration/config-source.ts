import type { Fault } from '../base/errors.js';
import type { ConfigPath, Position } from '../base/problem.js';

/** A configuration before it is divided into entries: a file, or an object. */
export interface ConfigSource {
  /** The absolute path of the file; undefined for an object. */
  readonly path: string | undefined;
  /** The name in messages. */
  readonly shown: string;
  /** The folder that relative paths are relative to. */
  readonly folder: string;
  readonly content: unknown;
  /** Mistakes in the text itself. */
  readonly faults: readonly TextFault[];
  /** Whether the text cannot be read at all, so that nothing more can be checked. */
  readonly broken: boolean;
  /** Whether `${NAME}` in the content stands for a variable. */
  readonly hasVariables: boolean;
  /** The position of the key or the value at a path; undefined for an object. */
  position(path: ConfigPath, of: 'key' | 'value'): Position | undefined;
}

/** A mistake in the text of a configuration. */
export interface TextFault extends Fault {
  readonly path: ConfigPath;
  readonly position: Position;
}

/** A configuration that a program gives as an object: no positions, `${NAME}` is plain text. */
export class ConfigObject implements ConfigSource {
  readonly path = undefined;
  readonly shown = 'configuration';
  readonly faults = [];
  readonly broken = false;
  readonly hasVariables = false;

  /** @param folder the folder that relative paths are relative to. */
  constructor(
    readonly content: unknown,
    readonly folder: string,
  ) {}

  position(): undefined {
    return undefined;
  }
}
