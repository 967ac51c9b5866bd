import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { ConfigError, type ConfigPath } from '../base/errors.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** What became of a piece of the file when its variables were replaced. Paths begin at the piece. */
export interface Interpolated {
  readonly value: unknown;
  readonly references: readonly Reference[];
  readonly faults: readonly { readonly path: ConfigPath; readonly message: string }[];
}

/** One `${NAME}` in the file. */
export interface Reference {
  readonly path: ConfigPath;
  readonly name: string;
  /** Where its text came from. `empty` and `unset`: the variable is, and there is no default. */
  readonly from: 'environment' | 'default' | 'empty' | 'unset';
  readonly text: string;
  /** Whether it is the whole scalar, so that it may become a number or a boolean. */
  readonly whole: boolean;
}

/**
 * The environment with a `.env` file beside the configuration read first: it never overrides what is set.
 * @throws ConfigError where there is one that cannot be read.
 */
export function readEnvironment(folder: string, env: Environment): Environment {
  const file = join(folder, '.env');
  try {
    return { ...parseEnv(readFileSync(file, 'utf8')), ...env };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return env;
    throw new ConfigError([{ file, position: undefined, path: [], message: `the file cannot be read (${code ?? error})` }]);
  }
}

/** `$${`, a literal `${` · `${NAME}` · `${NAME:-default}` · a `${` that is none of these. */
const VARIABLE = /\$\$\{|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}|\$\{/g;

/** Replaces the variables in every scalar, in one pass: what a variable holds is not looked into again. */
export function interpolate(piece: unknown, env: Environment): Interpolated {
  const references: Reference[] = [];
  const faults: { path: ConfigPath; message: string }[] = [];

  const inText = (text: string, path: ConfigPath): string =>
    text.replace(VARIABLE, (match: string, name: string | undefined, fallback: string | undefined) => {
      if (match === '$${') return '${';
      if (name === undefined) {
        faults.push({
          path,
          message: `a "\${" that begins no \${NAME} or \${NAME:-default}; write "$\${" for one that stands for itself`,
        });
        return match;
      }
      if (fallback?.includes('${')) {
        faults.push({ path, message: `the default of \${${name}} names another variable; a default is plain text` });
        return match;
      }
      const set = env[name];
      const from = set ? 'environment' : fallback !== undefined ? 'default' : set === '' ? 'empty' : 'unset';
      const replacement = (from === 'environment' ? set : fallback) ?? '';
      references.push({ path, name, from, text: replacement, whole: match === text });
      return replacement;
    });

  const inValue = (value: unknown, path: ConfigPath): unknown => {
    if (typeof value === 'string') return inText(value, path);
    if (Array.isArray(value)) return value.map((item, index) => inValue(item, [...path, index]));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inValue(item, [...path, key])]));
  };

  return { value: inValue(piece, []), references, faults };
}
