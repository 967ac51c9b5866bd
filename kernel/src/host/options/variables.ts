import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { ConfigError, type Fault, fault } from '../base/errors.js';
import type { ConfigPath } from '../base/problem.js';

/** Values of `${NAME}` by their names. @public */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A part of the file with its variables replaced. Paths start at that part. */
interface Interpolated {
  readonly value: unknown;
  readonly references: readonly Reference[];
  readonly faults: readonly VariableFault[];
}

interface VariableFault extends Fault {
  readonly path: ConfigPath;
}

/** One `${NAME}` in the file. */
export interface Reference {
  readonly path: ConfigPath;
  readonly name: string;
  /** Where its text comes from. `empty` and `unset`: the variable is, and it has no default. */
  readonly from: 'environment' | 'default' | 'empty' | 'unset';
  readonly text: string;
  /** Whether it is the whole scalar; only then can it become a number or a boolean. */
  readonly whole: boolean;
}

/** The environment, completed by the `.env` file beside the configuration. @throws ConfigError */
export function readEnvironment(folder: string, env: Environment): Environment {
  const file = join(folder, '.env');
  try {
    const text = readFileSync(file, 'utf8').replace(/^\ufeff/, ''); // an editor's byte order mark
    return { ...parseEnv(text), ...env };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return env;
    const found = fault('FILE_UNREADABLE', code ?? String(error));
    throw new ConfigError([{ file, position: undefined, path: [], ...found }]);
  }
}

/** `$${`, a literal `${` · `${NAME}` · `${NAME:-default}` · any other `${`. */
const VARIABLE = /\$\$\{|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}|\$\{[^}]*\}?/g;

/** Shown in place of an invalid reference: somebody may have put the value itself there. */
const INVALID = `\${…}`;

/** Replaces variables in every scalar, in one pass: their texts are not scanned again. */
export function interpolate(piece: unknown, env: Environment): Interpolated {
  const references: Reference[] = [];
  const faults: VariableFault[] = [];

  const inText = (text: string, path: ConfigPath): string =>
    text.replace(VARIABLE, (match: string, name: string | undefined, fallback: string | undefined) => {
      if (match === '$${') return '${';
      if (name === undefined) {
        faults.push({ path, ...fault('VARIABLE_MALFORMED') });
        return INVALID;
      }
      if (fallback?.includes('${')) {
        faults.push({ path, ...fault('VARIABLE_NESTED', name) });
        return INVALID;
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
