import { join } from 'node:path';
import type { Clock, Message, SessionId } from '@plugboard/kernel';
import { CapturedLog, ManualClock } from '@plugboard/kernel/testing';
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

/** A store over a file in that folder, started. */
export function openStore(folder: string, { clock = new ManualClock(), ttl = 30 * DAY }: { clock?: Clock; ttl?: number } = {}) {
  const log = new CapturedLog();
  const path = join(folder, 'sessions.db');
  const store = new SqliteStore({ path, ttl, clock, log: log.logger(clock) });
  store.start();
  return { store, clock, path, logs: log.lines, close: () => store.stop() };
}
