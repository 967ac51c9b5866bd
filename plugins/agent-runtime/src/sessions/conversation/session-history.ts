import type { Message } from '@plugboard/kernel';
import {
  Account,
  conversationId,
  type SessionId,
  type StoredSession,
  type Summary,
  type TurnCommit,
  TurnError,
} from '@plugboard/kernel/contracts';
import type { TurnMemory } from '../../engine/limits/turn-memory.js';
import { bytesOf } from '../../engine/messages/message-size.js';
import { TokenCount } from '../history/token-count.js';
import type { SessionStorage } from '../store/session-storage.js';

/**
 * Turns without a new attempt after a failed summary: it would most likely fail again, at the same
 * cost.
 */
const SUMMARY_COOLDOWN = 4;

/** A conversation in memory. A commit appends the messages of its turn to it. */
export interface LoadedSession extends StoredSession {
  readonly messages: Message[];
  readonly count: TokenCount;
}

/** The conversation of an active session, cached between turns. */
export class SessionHistory {
  readonly id: SessionId;
  #conversation: string | undefined;
  readonly #storage: SessionStorage;
  readonly #memory: TurnMemory;
  #known: LoadedSession | undefined;
  /** The store's generation when `#known` was loaded or validated. */
  #generation: object | undefined;
  /** Whether the store has the session, once that is known. */
  #isStored: boolean | undefined;
  /** Where its memory is reserved while a turn uses it. */
  #reservation: { readonly account: Account; readonly bytes: number } | undefined;
  /** What counts as a cache in the memory. */
  #cachedBytes = 0;
  /** No summary is requested before this version. */
  #summaryFrom = 0;

  constructor(id: SessionId, storage: SessionStorage, memory: TurnMemory) {
    this.id = id;
    this.#storage = storage;
    this.#memory = memory;
  }

  /** The opaque id of the session: a hash, made once. */
  get conversation(): string {
    this.#conversation ??= conversationId(this.id);
    return this.#conversation;
  }

  /** Memory that the conversation takes between turns. */
  get cachedBytes(): number {
    return this.#cachedBytes;
  }

  /** Whether the store may not have the session. */
  get mayBeNew(): boolean {
    return this.#isStored !== true;
  }

  /** Whether the store has the session: asked once, unless its turn has found out. */
  async isStored(): Promise<boolean> {
    this.#isStored ??= (await this.#storage.call((store) => store.info(this.id), 'info', this.id)) !== undefined;
    return this.#isStored;
  }

  /** Drops the cache. The next turn loads the conversation again. */
  release(): void {
    this.#cache(undefined);
  }

  /**
   * Returns the stored conversation: from memory if the store is still at the same version, which
   * it is asked for if its `generation` does not say so. Its memory is reserved in the account
   * before it is loaded, until `idle`.
   *
   * @param leased the version of the session in the store, where it is known.
   * @throws TurnError if it does not fit into the memory, or if the store fails; the signal's
   *   reason.
   */
  async current(account: Account, signal: AbortSignal, leased?: number): Promise<LoadedSession> {
    const known = this.#known;
    if (!known) return this.#load(account, signal);
    const version = leased ?? (this.#isValid ? known.version : await this.#version());
    this.release();
    const bytes = Account.costOf(known.bytes);
    if (version !== known.version || !account.reserve(bytes)) return this.#load(account, signal);
    return this.#use(known, account, bytes);
  }

  /** The turn has ended. The conversation is kept for the next one, while there is memory. */
  idle(): void {
    this.#reservation?.account.release(this.#reservation.bytes);
    this.#reservation = undefined;
    if (!this.#isStored) this.#isStored = undefined; // it may be created between turns
    this.#report();
  }

  get #isValid(): boolean {
    return this.#generation !== undefined && this.#generation === this.#storage.store.generation;
  }

  async #version(): Promise<number> {
    const { generation } = this.#storage.store;
    const version = await this.#storage.call((store) => store.version(this.id), 'version', this.id);
    this.#generation = generation;
    return version;
  }

  async #load(account: Account, signal: AbortSignal): Promise<LoadedSession> {
    this.#generation = this.#storage.store.generation;
    const info = await this.#storage.call((store) => store.info(this.id), 'info', this.id);
    const expected = info?.bytes ?? 0;
    this.#isStored = info !== undefined;
    await this.#memory.reserve(account, expected, signal);
    const stored = await this.#storage.call((store) => store.load(this.id), 'load', this.id);
    if (stored.bytes > expected) account.require(Account.costOf(stored.bytes - expected));
    else account.release(Account.costOf(expected - stored.bytes));
    // Messages of a store may be frozen, and then could not keep their sizes and texts.
    const messages = stored.messages.map((message) => ({ ...message }));
    return this.#use({ ...stored, messages, count: new TokenCount() }, account, Account.costOf(stored.bytes));
  }

  #use(loaded: LoadedSession, account: Account, bytes: number): LoadedSession {
    this.#reservation = { account, bytes };
    this.#known = loaded;
    return loaded;
  }

  /** Whether a summary may be requested for the loaded conversation. */
  maySummarize({ version }: StoredSession): boolean {
    return version >= this.#summaryFrom;
  }

  /** Records that a summary of the loaded conversation failed. */
  noteFailedSummary({ version }: StoredSession): void {
    this.#summaryFrom = version + 1 + SUMMARY_COOLDOWN;
  }

  /**
   * Stores a summary. If the store fails, the summary lasts as long as the session is in memory.
   * @throws TurnError
   */
  async summarize(stored: LoadedSession, summary: Summary): Promise<void> {
    if (this.#known === stored) this.#cache({ ...stored, summary });
    await this.#storage.call((store) => store.putSummary(this.id, stored.version, summary), 'putSummary', this.id);
  }

  /**
   * Commits a turn on top of the conversation it began with, and appends its messages to it. If the
   * session has moved on, nothing is stored.
   *
   * @throws TurnError if the store fails. The cache is then dropped: how much of the commit took
   *   effect is unknown.
   */
  async commit(before: LoadedSession, turn: Omit<TurnCommit, 'expected'>): Promise<void> {
    const { version, turns, messages, bytes } = before;
    this.#known = undefined;
    let committed: LoadedSession | undefined;
    try {
      await this.#storage.call((store) => store.commit(this.id, { ...turn, expected: version }), 'commit', this.id);
      this.#isStored = true;
      messages.push(...turn.messages);
      const added = turn.messages.reduce((sum, message) => sum + bytesOf(message), 0);
      committed = { ...before, version: version + 1, turns: turns + 1, bytes: bytes + added };
    } finally {
      this.#cache(committed);
    }
  }

  #cache(loaded: LoadedSession | undefined): void {
    this.#known = loaded;
    this.#report();
  }

  #report(): void {
    const bytes = this.#reservation || !this.#known ? 0 : Account.costOf(this.#known.bytes);
    const change = bytes - this.#cachedBytes;
    this.#cachedBytes = bytes;
    if (change !== 0) this.#memory.budget.cache(change);
  }
}

/** The size limit of a session. A session at the limit accepts no more turns. */
const MAX_MESSAGES = 50_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** @throws TurnError `session_full` if the session has reached its size limit. */
export function assertNotFull({ messages, bytes }: StoredSession): void {
  if (messages.length < MAX_MESSAGES && bytes < MAX_BYTES) return;
  throw new TurnError(
    'session_full',
    `The session has ${messages.length} messages (${bytes} bytes), and the limit is ${MAX_MESSAGES} (${MAX_BYTES} bytes): start a new session, or fork this one at an earlier turn.`,
  );
}
