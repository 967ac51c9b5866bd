import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '@plugboard/kernel';
import type { StoreLimits } from '@plugboard/store-kit';
import { CapturedLog, ManualClock } from '@plugboard/testing';
import { DAY, HOUR } from '../../../test/support/stored-turns.js';
import type { BackupOptions } from '../src/database/backup.js';
import { GROUP_TICKS } from '../src/database/group-commit.js';
import { openDatabase } from '../src/database/open-database.js';
import { SqliteStore } from '../src/sqlite-store.js';

export * from '../../../test/support/stored-turns.js';

/** Starts a store over a file in a folder. */
export function openStore<C extends Clock = ManualClock>(
  folder: string,
  options: Partial<StoreLimits> & { clock?: C; backup?: BackupOptions } = {},
) {
  const clock = options.clock ?? (new ManualClock() as Clock as C);
  const log = new CapturedLog();
  const path = join(folder, 'sessions.db');
  const opened: DatabaseSync[] = [];
  const { ttl = 30 * DAY, quotas = { maxSessions: 100_000, maxBytes: 1e9 }, caps, backup } = options;
  const store = new SqliteStore({ path, ttl, quotas, caps, backup, clock, log: log.logger(clock) }, (file) => {
    const found = openDatabase(file);
    opened.push(found.database);
    return found;
  });
  store.start();
  const [database] = opened;
  if (!database) throw new Error('the store opened no file');
  return { store, database, clock, path, logs: log.lines, close: () => store.stop() };
}

/** Waits until the writes that are queued are committed. Durable writes are not synced yet. */
export async function groupCommitted(): Promise<void> {
  for (let tick = 0; tick <= GROUP_TICKS; tick++) await new Promise(setImmediate);
}

/**
 * Advances the clock step by step, so that what a timer started is written before the next one
 * fires.
 */
export async function pass(clock: ManualClock, ms: number, step = HOUR): Promise<void> {
  for (let passed = 0; passed < ms; passed += step) {
    clock.advance(step);
    await groupCommitted();
  }
}
