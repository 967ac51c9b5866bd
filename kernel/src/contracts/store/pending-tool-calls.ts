import type { Message } from '../messages/message.js';
import type { SessionId } from './conversation-store.js';

/** Owns pending tool calls: a project and the agent (or raw model) that made them. @experimental */
export type PendingToolCallsOwner = Omit<SessionId, 'key'>;

/**
 * Turns without a session that ended with calls of the caller's own tools. The agent's own tools
 * may have run in the same turn; their calls and results are kept here, because the caller does not
 * have them.
 *
 * 1. The turn ends with calls for the caller: `save` stores its messages, once for all of them,
 *    under one key per call.
 * 2. The caller sends the results in its next request: `find` says which of its calls have messages
 *    here, and how large these are; `load` returns them. A request may be retried, so `load` removes
 *    nothing.
 * 3. An hour after `save` the messages expire.
 *
 * @experimental
 */
export interface PendingToolCalls {
  /** Stores messages under each key, and replaces what an earlier `save` stored there. */
  save(owner: PendingToolCallsOwner, keys: readonly string[], messages: readonly Message[]): Promise<void>;
  /** Returns the keys that have messages, with the bytes of these as JSON. */
  find(owner: PendingToolCallsOwner, keys: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Returns the messages under a key, or undefined if there are none or they have expired. */
  load(owner: PendingToolCallsOwner, key: string): Promise<readonly Message[] | undefined>;
}
