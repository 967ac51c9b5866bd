import type { DatabaseSync } from 'node:sqlite';
import { conversationId } from '@plugboard/kernel';

/** SQL, or more than SQL alone can do. */
type Step = string | ((database: DatabaseSync) => void);

/**
 * The steps from an empty file to the present schema. The file's `user_version` says how many it has had. A step that was released is
 * never changed: what must change is a new step at the end.
 */
export const STEPS: readonly Step[] = [
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
  addConversations,
  `
  -- Texts that are kept with sessions, for example responses under their ids.
  CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (project, name)
  ) STRICT;
  CREATE INDEX document_by_session ON document (session);
  `,
];

/** The third step. Of a session that was there before it, only its last use is known: so it counts as created and changed then. */
function addConversations(database: DatabaseSync): void {
  database.function('conversation_id', { deterministic: true }, (project, agent, key) =>
    conversationId({ project: String(project), agent: String(agent), key: String(key) }),
  );
  database.exec(`
  -- The version at which the session began: its first turn is the one after it.
  ALTER TABLE session ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE session ADD COLUMN conversation TEXT NOT NULL DEFAULT '';
  ALTER TABLE session ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE session ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE session ADD COLUMN user TEXT;
  -- A JSON object of texts.
  ALTER TABLE session ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
  UPDATE session SET conversation = conversation_id(project, agent, key), created_at = used_at, updated_at = used_at;

  -- The agent stands at the end, so that sessions of others are passed over without a look at them.
  CREATE UNIQUE INDEX session_by_conversation ON session (conversation);
  CREATE INDEX session_by_creation ON session (project, created_at, id, agent);
  CREATE INDEX session_by_user ON session (project, user, created_at, id, agent) WHERE user IS NOT NULL;

  CREATE TABLE summary (
    session INTEGER PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
    messages INTEGER NOT NULL,
    text TEXT NOT NULL
  ) STRICT;

  -- Of sessions that were deleted: the version from which one that begins anew under the name goes on.
  CREATE TABLE tombstone (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,
    agent TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    UNIQUE (project, agent, key)
  ) STRICT;
  CREATE INDEX tombstone_by_expiry ON tombstone (expires_at);

  CREATE INDEX turn_by_session ON turn (project, agent, key);
  `);
}
