/** A conversation with one agent, in this process or on a server. */
export interface Conversation {
  /** The agent's name. */
  readonly agent: string;
  /**
   * Sends a message and returns the answer as it is written. Aborting the signal stops the turn;
   * the iteration then throws.
   *
   * @throws ChatError if the turn fails.
   */
  send(text: string, signal: AbortSignal): AsyncIterable<ChatEvent>;
  close(): Promise<void>;
}

export type ChatEvent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly name: string; readonly input: string }
  | { readonly kind: 'result'; readonly content: string; readonly isError: boolean }
  /** The answer was cut off, by a limit or a filter. */
  | { readonly kind: 'cut'; readonly reason: string }
  /** Side information for the user. */
  | { readonly kind: 'note'; readonly text: string };

/** A conversation or a turn failed. The message says why, and what to do about it. */
export class ChatError extends Error {
  override readonly name = 'ChatError';
}
