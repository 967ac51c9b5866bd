import type { SessionId } from '@plugboard/kernel/contracts';

/**
 * Encodes a text from outside for a `text` column. PostgreSQL has neither U+0000 nor lone
 * surrogates: a text with one, and any that begins with a quotation mark, becomes a JSON string.
 */
export function toColumn(text: string): string {
  return text.startsWith('"') || text.includes('\u0000') || !text.isWellFormed() ? JSON.stringify(text) : text;
}

/** Decodes what `toColumn` returned. What another program wrote is returned as it is. */
export function fromColumn(text: string): string {
  if (!text.startsWith('"')) return text;
  try {
    return String(JSON.parse(text));
  } catch {
    return text;
  }
}

/** The columns `project`, `agent` and `key`. */
export function idColumns({ project, agent, key }: SessionId): [string, string, string] {
  return [toColumn(project), toColumn(agent), toColumn(key)];
}

/** Where statements name a session by `$1`, `$2`, `$3`. */
export const BY_ID = 'project = $1 AND agent = $2 AND key = $3';

/** The three values of `idColumns`. */
export function idOf({ project, agent, key }: SessionId): SessionId {
  return { project: fromColumn(project), agent: fromColumn(agent), key: fromColumn(key) };
}
