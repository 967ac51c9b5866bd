import { readFile } from 'node:fs/promises';
import { writeAtomically } from './atomic-write.js';

/** When each token was last used: milliseconds since the epoch by token id. */
export type LastUses = ReadonlyMap<string, number>;

/** The file with the last uses, beside the tokens file: each file has one writer. */
export function lastUseFile(tokensFile: string): string {
  return `${tokensFile}.used`;
}

/** Reads the file. A missing or damaged file counts as empty, because nothing depends on it. */
export async function readLastUses(path: string): Promise<LastUses> {
  try {
    const content: unknown = JSON.parse(await readFile(path, 'utf8'));
    const times = Object.entries(content ?? {}).map(([id, time]): [string, number] => [id, Date.parse(String(time))]);
    return new Map(times.filter(([, time]) => !Number.isNaN(time)));
  } catch {
    return new Map();
  }
}

/** Adds uses to the file. Those of another server with the same file may be later, and stay. */
export async function writeLastUses(path: string, uses: LastUses): Promise<void> {
  const all = new Map(await readLastUses(path));
  for (const [id, time] of uses) all.set(id, Math.max(time, all.get(id) ?? 0));
  const times = [...all].map(([id, time]) => [id, new Date(time).toISOString()]);
  await writeAtomically(path, `${JSON.stringify(Object.fromEntries(times), undefined, 2)}\n`);
}
