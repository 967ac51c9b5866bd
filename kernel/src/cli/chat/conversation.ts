/** Someone to talk to: an agent in this process, or behind a running server. */
export interface Conversation {
  /** The name that is spoken to. */
  readonly agent: string;
  /**
   * Says something, and gives what comes back as it comes.
   *
   * @throws ChatError where the turn failed.
   */
  say(text: string, signal: AbortSignal): AsyncIterable<Heard>;
  close(): Promise<void>;
}

export type Heard =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly name: string; readonly input: string }
  | { readonly kind: 'result'; readonly content: string; readonly isError: boolean }
  /** The answer ended before it was finished, for this reason. */
  | { readonly kind: 'cut'; readonly reason: string };

/** Why there is no answer, or nobody to talk to, in words for the person at the terminal. */
export class ChatError extends Error {
  override readonly name = 'ChatError';
}
