import assert from 'node:assert/strict';
import type { Message, SessionStore } from '@plugboard/kernel';
import {
  conversationId,
  type IdempotencyKey,
  type IdempotencyStore,
  type SessionId,
  type SessionInfo,
  type StoredSession,
} from '@plugboard/kernel/contracts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const OWNER = { project: 'acme', agent: 'helper' };
export const SESSION: SessionId = { ...OWNER, key: 'anna' };

/** A turn of two messages that contain its number. */
export function turn(n: number): readonly Message[] {
  return [
    { role: 'user', content: `question ${n}` },
    { role: 'assistant', content: `answer ${n}` },
  ];
}

export async function commitTurns(store: SessionStore, id: SessionId, count: number): Promise<void> {
  for (let n = 1; n <= count; n++) await store.commit(id, { expected: n - 1, messages: turn(n) });
}

/** The record of an idempotency key, or the request that has claimed it. Leaves no claim. */
export async function recordOf(store: IdempotencyStore, key: IdempotencyKey): ReturnType<IdempotencyStore['claim']> {
  const found = await store.claim(key, 'a look');
  if (!found) await store.release(key);
  return found;
}

/** Asserts that each id is a session of its own. */
export async function assertSeparate(store: SessionStore, ids: readonly SessionId[]): Promise<void> {
  for (const [n, id] of ids.entries()) await store.commit(id, { expected: 0, messages: turn(n) });
  for (const [n, id] of ids.entries()) {
    await assertLoaded(store, id, { version: 1, messages: turn(n) }, `the session ${JSON.stringify(id)}`);
  }
}

/** Tries to change messages. A store may also return frozen messages: then the change throws. */
export function tryToMutate(messages: readonly Message[]): void {
  for (const message of messages) attempt(() => Object.assign(message, { content: 'mutated' }));
  attempt(() => (messages as Message[]).splice(0));
}

function attempt(change: () => void): void {
  try {
    change();
  } catch (error) {
    assert.ok(error instanceof TypeError);
  }
}

/** Asserts what a session loads, the size in `bytes`, and the number of `turns`. */
export async function assertLoaded(
  store: SessionStore,
  id: SessionId,
  expected: Omit<StoredSession, 'bytes' | 'turns'>,
  message?: string,
): Promise<void> {
  const { version, turns, messages, bytes, summary } = await store.load(id);
  assert.deepEqual({ version, messages, summary }, { summary: undefined, ...expected }, message);
  assert.equal(bytes, bytesOf(messages), 'the bytes of the messages as JSON');
  assert.equal(turns, (await store.info(id))?.turns ?? 0, 'the number of turns');
}

function bytesOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + Buffer.byteLength(JSON.stringify(message)), 0);
}

/** Asserts what `info` returns. @returns it. */
export async function assertInfo(
  store: SessionStore,
  id: SessionId,
  expected: Pick<SessionInfo, 'turns' | 'user' | 'metadata'>,
): Promise<SessionInfo> {
  const info = await store.info(id);
  assert.ok(info, `there is no session ${JSON.stringify(id)}`);
  const { turns, user, metadata, conversation } = info;
  assert.deepEqual({ turns, user, metadata }, { user: undefined, ...expected });
  assert.deepEqual([info.id, conversation], [id, conversationId(id)]);
  return info;
}

/**
 * Asserts that a store says how large a text is before it reads it, and throws on what `reserve`
 * throws.
 */
export async function assertAnnounced(
  bytes: number,
  read: (reserve: (bytes: number) => void) => Promise<unknown>,
): Promise<void> {
  let announced = 0;
  await read((size) => {
    announced += size;
  });
  assert.ok(announced >= bytes, `it announces ${announced} bytes before it reads ${bytes}`);
  const full = new Error('full');
  const reserve = () => {
    throw full;
  };
  await assert.rejects(read(reserve), (error) => error === full);
}
