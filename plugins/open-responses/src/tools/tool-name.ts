import { hash } from 'node:crypto';

/** How a call of a caller's tool is shown to the caller. */
export interface CallForm {
  readonly type: 'function' | 'custom';
  /** The tool's name in its namespace. */
  readonly name: string;
  readonly namespace: string | undefined;
}

/** Characters of a function's name at the providers. */
const MAX_NAME = 64;
const HASH_LENGTH = 8;

/**
 * The name of a caller's tool at the model (CL-1): a function in a namespace is
 * `<namespace>__<name>`, and a hash ends a name that would be too long.
 */
export function modelName(namespace: string | undefined, name: string): string {
  if (namespace === undefined) return name;
  const whole = `${namespace}__${name}`;
  if (whole.length <= MAX_NAME) return whole;
  return `${whole.slice(0, MAX_NAME - HASH_LENGTH - 1)}_${hash('sha256', whole).slice(0, HASH_LENGTH)}`;
}
