import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Clock, Message, SessionId, SessionStore } from '@plugboard/kernel';
import { CapturedLog, ManualClock } from '@plugboard/kernel/testing';
import { openFile } from '../src/open-file.js';
import { SqliteStore } from '../src/sqlite-store.js';

export const HOUR = 60 * 60_000;
export const DAY = 24 * HOUR;

export const OWNER = { project: 'acme', agent: 'helper' };
export const session = (key: string): SessionId => ({ ...OWNER, key });
export const ANNA = session('anna');

/** A turn that says which one it is. */
export function turn(n: number, content = `question ${n}`): readonly Message[] {
  return [
    { role: 'user', content },
    { role: 'assistant', content: `answer ${n}` },
  ];
}

/** The conversation as it is loaded. */
export async function kept(store: SessionStore, id: SessionId) {
  const { version, messages } = await store.load(id);
  return { version, messages };
}

/** A store over a file in that folder, started, and what it works with. */
export function openStore<C extends Clock = ManualClock>(folder: string, options: { clock?: C; ttl?: number } = {}) {
  const clock = options.clock ?? (new ManualClock() as Clock as C);
  const log = new CapturedLog();
  const path = join(folder, 'sessions.db');
  const opened: DatabaseSync[] = [];
  const store = new SqliteStore({ path, ttl: options.ttl ?? 30 * DAY, clock, log: log.logger(clock) }, (file) => {
    const found = openFile(file);
    opened.push(found.database);
    return found;
  });
  store.start();
  const [database] = opened;
  if (!database) throw new Error('the store has opened no file');
  return { store, database, clock, path, logs: log.lines, close: () => store.stop() };
}

/** Lets the time pass, step by step, so that what a timer began is written before the next one comes. */
export async function pass(clock: ManualClock, ms: number, step = HOUR): Promise<void> {
  for (let passed = 0; passed < ms; passed += step) {
    clock.advance(step);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  }
}
