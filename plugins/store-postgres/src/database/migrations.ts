/**
 * The migrations from an empty schema to the current one. `meta.version` is the number of
 * migrations it has had. A released migration never changes; a change is a new one at the end, and
 * one that an earlier release cannot work with also raises `OLDEST`.
 *
 * Texts from outside are in `text` columns, as JSON or by `toColumn`: never `jsonb`, which has no
 * U+0000. Times are the database's, in milliseconds since the epoch.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE plugboard.meta (version integer NOT NULL, oldest integer NOT NULL);
  CREATE UNIQUE INDEX meta_one_row ON plugboard.meta ((true));

  -- Servers. One is alive while its lease has not expired.
  CREATE TABLE plugboard.replica (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    expires_at timestamptz NOT NULL
  );

  -- Turns that wait, run or were interrupted, in the order in which they came. One that ends is deleted.
  CREATE TABLE plugboard.turn (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    turn_id text COLLATE "C" NOT NULL UNIQUE,
    replica bigint NOT NULL,
    runs boolean NOT NULL,
    input text NOT NULL,
    fingerprint text,
    end_why text,
    ended_at bigint
  );
  -- The lease of a session.
  CREATE UNIQUE INDEX turn_lease ON plugboard.turn (project, agent, key) WHERE runs;
  CREATE INDEX turn_by_session ON plugboard.turn (project, agent, key, seq);
  CREATE INDEX turn_ended ON plugboard.turn (ended_at) WHERE ended_at IS NOT NULL;

  CREATE TABLE plugboard.session (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL UNIQUE,
    base bigint NOT NULL, -- the version before the first turn
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    end_user text COLLATE "C",
    title text,
    metadata text NOT NULL,
    bytes bigint NOT NULL, -- of messages, records, documents, approvals and metadata
    UNIQUE (project, agent, key)
  );
  CREATE INDEX session_by_activity ON plugboard.session (project, updated_at, id, agent);
  CREATE INDEX session_by_user ON plugboard.session (project, end_user, updated_at, id, agent) WHERE end_user IS NOT NULL;
  CREATE INDEX session_by_age ON plugboard.session (updated_at);

  -- Without a foreign key: each row would be checked by one more read.
  CREATE TABLE plugboard.message (
    session bigint NOT NULL,
    turn bigint NOT NULL, -- the version that the turn led to
    place integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (session, turn, place)
  );

  -- One row for each turn in a session.
  CREATE TABLE plugboard.record (
    session bigint NOT NULL,
    turn bigint NOT NULL,
    turn_id text COLLATE "C", -- null in a copy
    body text,
    PRIMARY KEY (session, turn)
  );
  CREATE INDEX record_by_turn_id ON plugboard.record (turn_id) WHERE turn_id IS NOT NULL;

  CREATE TABLE plugboard.summary (
    session bigint PRIMARY KEY REFERENCES plugboard.session (id) ON DELETE CASCADE,
    messages bigint NOT NULL,
    body text NOT NULL
  );

  -- Deleted sessions: the version from which a new session with the same id continues.
  CREATE TABLE plugboard.tombstone (
    project text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (project, agent, key)
  );
  CREATE INDEX tombstone_by_expiry ON plugboard.tombstone (expires_at);

  CREATE TABLE plugboard.document (
    project text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    session bigint NOT NULL REFERENCES plugboard.session (id) ON DELETE CASCADE,
    body text NOT NULL,
    PRIMARY KEY (project, name)
  );
  CREATE INDEX document_by_session ON plugboard.document (session);

  CREATE TABLE plugboard.approval (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bigint NOT NULL REFERENCES plugboard.session (id) ON DELETE CASCADE,
    project text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    waits boolean NOT NULL,
    caller text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    listed text NOT NULL,
    body text NOT NULL,
    UNIQUE (project, name)
  );
  CREATE INDEX approval_by_session ON plugboard.approval (session);
  CREATE INDEX approval_waiting ON plugboard.approval (project, id) WHERE waits;
  CREATE INDEX approval_of_caller ON plugboard.approval (project, caller, id) WHERE waits;

  CREATE TABLE plugboard.pending_call (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project text COLLATE "C" NOT NULL,
    messages text NOT NULL,
    expires_at bigint NOT NULL
  );
  CREATE INDEX pending_call_by_expiry ON plugboard.pending_call (expires_at);
  CREATE TABLE plugboard.pending_call_key (
    project text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    call bigint NOT NULL REFERENCES plugboard.pending_call (id) ON DELETE CASCADE,
    PRIMARY KEY (project, agent, key)
  );
  CREATE INDEX pending_call_key_by_call ON plugboard.pending_call_key (call);

  -- Answers to requests with an idempotency key. No answer: tools began, and the outcome is unknown.
  CREATE TABLE plugboard.idempotency (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project text COLLATE "C" NOT NULL,
    route text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint text NOT NULL,
    answer text,
    replica bigint,
    expires_at bigint NOT NULL,
    UNIQUE (project, route, key)
  );
  CREATE INDEX idempotency_by_expiry ON plugboard.idempotency (expires_at);

  -- What plugins keep, as JSON.
  CREATE TABLE plugboard.state (
    entry text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text NOT NULL,
    expires_at bigint, -- null: the key stays
    PRIMARY KEY (entry, key)
  );
  CREATE INDEX state_by_expiry ON plugboard.state (expires_at) WHERE expires_at IS NOT NULL;

  -- What projects store, in several rows each, so that commits do not wait for one another.
  CREATE TABLE plugboard.usage (
    project text COLLATE "C" NOT NULL,
    slot integer NOT NULL,
    sessions bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (project, slot)
  );
  `,
  `
  -- Whether tools have begun in a request without an answer. While its server lives, it runs.
  ALTER TABLE plugboard.idempotency ADD COLUMN began boolean NOT NULL DEFAULT true;
  `,
  `
  -- The opaque id of the session that a session, or that of a turn, belongs to: it is deleted with that one,
  -- and not listed.
  ALTER TABLE plugboard.session ADD COLUMN parent text COLLATE "C";
  CREATE INDEX session_by_parent ON plugboard.session (parent) WHERE parent IS NOT NULL;
  ALTER TABLE plugboard.turn ADD COLUMN parent text COLLATE "C";
  `,
  `
  -- Several servers: every turn is in line, and has an input when it begins.
  ALTER TABLE plugboard.turn ALTER input DROP NOT NULL, ADD arrived_at bigint, ADD conversation text COLLATE "C",
    ADD end_user text COLLATE "C", ADD title text; -- null: work between turns
  CREATE INDEX turn_by_replica ON plugboard.turn (replica);
  CREATE INDEX turn_by_conversation ON plugboard.turn (conversation) WHERE title IS NOT NULL;

  -- Buckets of a minute: what was in them at that time. They drain evenly since.
  CREATE TABLE plugboard.rate (
    name text COLLATE "C" PRIMARY KEY,
    per_minute double precision NOT NULL,
    used double precision NOT NULL,
    counted_at bigint NOT NULL
  );
  -- Names that one holder has alone, while its server lives.
  CREATE TABLE plugboard.hold (
    name text COLLATE "C" PRIMARY KEY,
    replica bigint NOT NULL,
    holder text COLLATE "C" NOT NULL
  );
  -- Servers that read a topic, and the texts that others write for them. Empty after a crash.
  CREATE UNLOGGED TABLE plugboard.interest (
    topic text COLLATE "C" NOT NULL,
    replica bigint NOT NULL,
    PRIMARY KEY (topic, replica)
  );
  CREATE UNLOGGED TABLE plugboard.live (
    topic text COLLATE "C" NOT NULL,
    offer text COLLATE "C" NOT NULL,
    place integer NOT NULL,
    replica bigint NOT NULL,
    texts text[] NOT NULL, -- none: the end
    PRIMARY KEY (topic, offer, place)
  );
  `,
];

/** The oldest schema whose release works with the current one. */
export const OLDEST = 1;
