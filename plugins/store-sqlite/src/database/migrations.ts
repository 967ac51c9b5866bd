import type { DatabaseSync } from 'node:sqlite';
import type { Message } from '@plugboard/kernel';
import { conversationId, sessionTitle } from '@plugboard/kernel/contracts';

/** SQL, or a function for what SQL alone cannot do. */
type Migration = string | ((database: DatabaseSync) => void);

/**
 * The migrations from an empty file to the current schema. The file's `user_version` is the number
 * of migrations it has had. A released migration never changes; a change of the schema is a new
 * migration at the end.
 */
export const MIGRATIONS: readonly Migration[] = [
  `
  -- How many times the file was opened. A turn with an earlier number belongs to a dead process.
  CREATE TABLE opening (number INTEGER NOT NULL) STRICT;
  INSERT INTO opening VALUES (0);

  -- Ids are never reused, so that leftover messages of a deleted session cannot end up in another.
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

  -- Stored in reading order. The column turn is the version that the turn led to.
  CREATE TABLE message (
    session INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    place INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, turn, place)
  ) STRICT, WITHOUT ROWID;

  -- Deleted sessions whose messages are still to be deleted.
  CREATE TABLE leftover (session INTEGER PRIMARY KEY) STRICT;

  -- Running and interrupted turns. A turn that ends is deleted.
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

  -- Written to find out whether the disk has space.
  CREATE TABLE probe (id INTEGER PRIMARY KEY, filler BLOB NOT NULL) STRICT;
  `,
  `
  -- Answers to requests with an idempotency key. No answer: tools started to run and the outcome is unknown.
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
  -- Documents of sessions, for example responses by their ids.
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
  `
  -- Messages and tool calls may have an extra. Earlier versions cannot read such messages, so this step
  -- prevents them from opening the file.
  `,
  `
  ALTER TABLE parked RENAME TO pending_tool_call;
  ALTER TABLE parked_key RENAME TO pending_tool_call_key;
  ALTER TABLE pending_tool_call_key RENAME COLUMN parked TO call;
  DROP INDEX parked_by_expiry;
  DROP INDEX parked_key_by_parked;
  CREATE INDEX pending_tool_call_by_expiry ON pending_tool_call (expires_at);
  CREATE INDEX pending_tool_call_key_by_call ON pending_tool_call_key (call);

  -- The size of the session's messages, documents and metadata, for the quotas of projects.
  ALTER TABLE session ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE session SET bytes = octet_length(metadata)
    + (SELECT coalesce(sum(octet_length(body)), 0) FROM message WHERE message.session = session.id)
    + (SELECT coalesce(sum(octet_length(body)), 0) FROM document WHERE document.session = session.id);

  -- The opening that is still copying a fork to this id; NULL if its messages are to be deleted.
  ALTER TABLE leftover ADD COLUMN opening INTEGER;

  -- There are few turns, and the process that runs one knows its row: each of these indexes cost a page
  -- per begin and end of a turn.
  DROP INDEX turn_by_id;
  DROP INDEX turn_open;
  DROP INDEX turn_by_session;
  `,
  `
  -- Rows are appended in the order of commits, so that turns of many sessions that end together share
  -- pages. Rows in the order of the index made a turn write half as many pages again.
  ALTER TABLE message RENAME TO ordered_message;
  CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    place INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  INSERT INTO message (session, turn, place, body) SELECT session, turn, place, body FROM ordered_message ORDER BY session, turn, place;
  DROP TABLE ordered_message;
  CREATE UNIQUE INDEX message_by_place ON message (session, turn, place);
  `,
  `
  -- What plugins keep, as JSON.
  CREATE TABLE state (
    id INTEGER PRIMARY KEY,
    entry TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (entry, key)
  ) STRICT;
  `,
  `
  -- Tool calls that wait for a person's approval, or waited.
  CREATE TABLE approval (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    waits INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (project, name)
  ) STRICT;
  CREATE INDEX approval_by_session ON approval (session);
  CREATE INDEX approval_waiting ON approval (project, id) WHERE waits = 1;
  `,
  addTitles,
  `
  -- A row of messages at place -1 is the record of its turn: what happened in it. It is copied and deleted
  -- with the messages. Earlier versions would take it for a message, so this step prevents them from
  -- opening the file.
  `,
  `
  -- Sessions are listed by their last turn.
  DROP INDEX session_by_creation;
  DROP INDEX session_by_user;
  CREATE INDEX session_by_activity ON session (project, updated_at, id, agent);
  CREATE INDEX session_by_user ON session (project, user, updated_at, id, agent) WHERE user IS NOT NULL;
  `,
  `
  -- What lists read of an approval stands before the rest, which may be large and is not read then. One
  -- that another program has damaged is left out: its call is denied.
  ALTER TABLE approval RENAME TO whole_approval;
  CREATE TABLE approval (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    waits INTEGER NOT NULL,
    caller TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    listed TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (project, name)
  ) STRICT;
  INSERT INTO approval
    SELECT id, session, project, name, waits, coalesce(body ->> 'caller', ''), coalesce(body ->> 'expiresAt', 0),
      json_object('call', body -> 'call', 'changed', body ->> 'changed', 'createdAt', body -> 'createdAt'), body
    FROM whole_approval WHERE json_valid(body);
  DROP TABLE whole_approval;
  CREATE INDEX approval_by_session ON approval (session);
  CREATE INDEX approval_waiting ON approval (project, id, expires_at) WHERE waits = 1;
  CREATE INDEX approval_of_caller ON approval (project, caller, id, expires_at) WHERE waits = 1;
  `,
  `
  -- NULL: the key does not expire.
  ALTER TABLE state ADD COLUMN expires_at INTEGER;
  CREATE INDEX state_by_expiry ON state (expires_at, entry) WHERE expires_at IS NOT NULL;

  -- How many keys an entry has, those included that have expired and are still to be deleted.
  CREATE TABLE state_count (entry TEXT NOT NULL PRIMARY KEY, keys INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO state_count SELECT entry, count(*) FROM state GROUP BY entry;
  CREATE TRIGGER state_added AFTER INSERT ON state BEGIN
    INSERT INTO state_count VALUES (new.entry, 1) ON CONFLICT DO UPDATE SET keys = keys + 1;
  END;
  CREATE TRIGGER state_deleted AFTER DELETE ON state BEGIN
    UPDATE state_count SET keys = keys - 1 WHERE entry = old.entry;
  END;
  `,
  `
  -- The opaque id of the session that a session belongs to: it is deleted with that one, and not listed.
  ALTER TABLE session ADD COLUMN parent TEXT;
  CREATE INDEX session_by_parent ON session (parent) WHERE parent IS NOT NULL;
  `,
];

/** The third migration. An older session gets its last use as the time of creation and change. */
function addConversations(database: DatabaseSync): void {
  database.function('conversation_id', { deterministic: true }, (project, agent, key) =>
    conversationId({ project: String(project), agent: String(agent), key: String(key) }),
  );
  database.exec(`
  -- The version before the session's first turn.
  ALTER TABLE session ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE session ADD COLUMN conversation TEXT NOT NULL DEFAULT '';
  ALTER TABLE session ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE session ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE session ADD COLUMN user TEXT;
  -- A JSON object of strings.
  ALTER TABLE session ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
  UPDATE session SET conversation = conversation_id(project, agent, key), created_at = used_at, updated_at = used_at;

  -- The agent is the last column, so that a filter by agent needs no look at the table.
  CREATE UNIQUE INDEX session_by_conversation ON session (conversation);
  CREATE INDEX session_by_creation ON session (project, created_at, id, agent);
  CREATE INDEX session_by_user ON session (project, user, created_at, id, agent) WHERE user IS NOT NULL;

  CREATE TABLE summary (
    session INTEGER PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
    messages INTEGER NOT NULL,
    text TEXT NOT NULL
  ) STRICT;

  -- Deleted sessions: the version from which a new session with the same id continues.
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

/** The tenth migration. Sessions get the title that they would have got when they began. */
function addTitles(database: DatabaseSync): void {
  database.exec('ALTER TABLE session ADD COLUMN title TEXT');
  const messages = database.prepare('SELECT body FROM message WHERE session = ? ORDER BY turn, place LIMIT ?');
  const setTitle = database.prepare('UPDATE session SET title = ? WHERE id = ?');
  for (const { id } of database.prepare('SELECT id FROM session').all()) {
    const title = titleOf(messages.all(Number(id), TITLE_MESSAGES).map(({ body }) => String(body)));
    if (title !== undefined) setTitle.run(title, Number(id));
  }
}

/** The first messages of an old session, one of which gives it its title. */
const TITLE_MESSAGES = 4;

/** The title by messages of the file. Undefined if one cannot be read. */
function titleOf(bodies: readonly string[]): string | undefined {
  try {
    return sessionTitle(bodies.map((body) => JSON.parse(body) as Message));
  } catch {
    return undefined;
  }
}
