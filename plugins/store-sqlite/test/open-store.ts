import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Clock, Message, SessionStore } from '@plugboard/kernel';
import type { SessionId } from '@plugboard/kernel/contracts';
import { CapturedLog, ManualClock } from '@plugboard/testing';
import type { BackupOptions } from '../src/database/backup.js';
import { GROUP_TICKS } from '../src/database/group-commit.js';
import { openDatabase } from '../src/database/open-database.js';
import { SqliteStore } from '../src/sqlite-store.js';
import type { ProjectQuotas } from '../src/tables/project-usage.js';
import type { RowCaps } from '../src/tables/store-tables.js';

export const HOUR = 60 * 60_000;
export const DAY = 24 * HOUR;

export const OWNER = { project: 'acme', agent: 'helper' };
export const session = (key: string): SessionId => ({ ...OWNER, key });
export const ANNA = session('anna');

/** A turn of two messages that contain its number. */
export function turn(n: number, content = `question ${n}`): readonly Message[] {
  return [
    { role: 'user', content },
    { role: 'assistant', content: `answer ${n}` },
  ];
}

export async function loaded(store: SessionStore, id: SessionId) {
  const { version, messages } = await store.load(id);
  return { version, messages };
}

/** Starts a store over a file in a folder. */
export function openStore<C extends Clock = ManualClock>(
  folder: string,
  options: { clock?: C; ttl?: number; quotas?: ProjectQuotas; caps?: RowCaps; backup?: BackupOptions } = {},
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
