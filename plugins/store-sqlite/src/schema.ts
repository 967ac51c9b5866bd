import type { DatabaseSync } from 'node:sqlite';
import { foreignFile, newerSchema } from './errors.js';

/** Stands in the head of the file and says whose it is: `PLGB`. */
const APPLICATION_ID = 0x504c4742;

/**
 * The steps from an empty file to the present schema. The file's `user_version` says how many it has had. A step that was released is
 * never changed: what must change is a new step at the end.
 */
const STEPS: readonly string[] = [
  `
  -- How often the file was opened: what began under an earlier number was begun by a process that is dead.
  CREATE TABLE opening (number INTEGER NOT NULL) STRICT;
  INSERT INTO opening VALUES (0);

  -- Ids are never given twice, so that what is left of a deleted session cannot come to belong to another.
  CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL,
    agent TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    UNIQUE (project, agent, key)
  ) STRICT;
  CREATE INDEX session_by_use ON session (used_at);

  -- Kept in the order in which they are read. The turn is the version that came of it.
  CREATE TABLE message (
    session INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    place INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, turn, place)
  ) STRICT, WITHOUT ROWID;

  -- Sessions that are gone, but for their messages.
  CREATE TABLE leftover (session INTEGER PRIMARY KEY) STRICT;

  -- Turns that run, and those that were interrupted; a turn that has ended leaves none.
  CREATE TABLE turn (
    project TEXT NOT NULL,
    agent TEXT NOT NULL,
    key TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    opening INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    interrupted_at INTEGER,
    input TEXT NOT NULL
  ) STRICT;
  CREATE INDEX turn_by_id ON turn (turn_id);
  CREATE INDEX turn_open ON turn (opening) WHERE interrupted_at IS NULL;
  CREATE INDEX turn_interrupted ON turn (interrupted_at) WHERE interrupted_at IS NOT NULL;

  CREATE TABLE parked (
    id INTEGER PRIMARY KEY,
    messages TEXT NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX parked_by_expiry ON parked (expires_at);
  CREATE TABLE parked_key (
    project TEXT NOT NULL,
    agent TEXT NOT NULL,
    key TEXT NOT NULL,
    parked INTEGER NOT NULL REFERENCES parked (id) ON DELETE CASCADE,
    PRIMARY KEY (project, agent, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX parked_key_by_parked ON parked_key (parked);

  -- One row that is written to see whether there is room.
  CREATE TABLE probe (id INTEGER PRIMARY KEY, filler BLOB NOT NULL) STRICT;
  `,
  `
  -- What was answered to requests that may be repeated. No answer: tools began, and nobody has said how the turn ended.
  CREATE TABLE idempotency (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,
    route TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    answer TEXT,
    expires_at INTEGER NOT NULL,
    UNIQUE (project, route, key)
  ) STRICT;
  CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);
  `,
];

/**
 * Looks whose file it is, and of which schema. Only reads.
 * @throws StoreError where it belongs to another program, or to a newer version of this plugin.
 */
export function assertOurs(database: DatabaseSync, path: string): void {
  const version = pragma(database, 'user_version');
  const isNew = version === 0 && pragma(database, 'application_id') === 0 && isEmpty(database);
  if (isNew) return;
  if (pragma(database, 'application_id') !== APPLICATION_ID) throw foreignFile(path);
  if (version > STEPS.length) throw newerSchema(path, version, STEPS.length);
}

/** Takes the steps that the file has not had, inside the caller's transaction. */
export function migrate(database: DatabaseSync): void {
  for (const step of STEPS.slice(pragma(database, 'user_version'))) database.exec(step);
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${STEPS.length}`);
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}
