import { type CheckContext, type ConfigProblem, parseDuration } from '@plugboard/kernel';
import type { SqliteConfig } from './config.js';

/** Milliseconds. A copy keeps the disk busy. */
const SHORTEST_INTERVAL = 60_000;

/** Finds the mistakes that the schema cannot describe. */
export function checkConfig({ path, backup }: SqliteConfig, { resolvePath }: CheckContext): ConfigProblem[] {
  if (backup === undefined) return [];
  const problems: ConfigProblem[] = [];
  if (resolvePath(backup.path) === resolvePath(path)) {
    problems.push({ path: ['backup', 'path'], message: 'is the database file itself; name another file' });
  }
  if (parseDuration(backup.every) < SHORTEST_INTERVAL) {
    problems.push({ path: ['backup', 'every'], message: 'must be at least 1m' });
  }
  return problems;
}
