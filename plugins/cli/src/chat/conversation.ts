/** The agents that a chat can talk to: of a file, in this process, or of a running server. */
export interface ChatAgents {
  /** Whether sessions are kept when the chat has ended. */
  readonly keepsSessions: boolean;
  /** The first is the one to talk to if none is named. */
  targets(): Promise<readonly ChatTarget[]>;
  /** The newest sessions of an agent. @throws ChatError */
  sessions(agent: string): Promise<readonly ChatSession[]>;
  /**
   * The last messages of a session, oldest first. Empty if it is new; undefined if the caller
   * cannot read them.
   *
   * @throws ChatError
   */
  lastMessages(agent: string, key: string): Promise<readonly ChatMessage[] | undefined>;
  /**
   * Runs a turn and returns the answer as it is written. Aborting the signal stops the turn; the
   * iteration then throws.
   *
   * @throws ChatError if the turn fails.
   */
  run(turn: ChatTurn): AsyncIterable<ChatEvent>;
  close(): Promise<void>;
}

/** An agent, or a model without one. */
export interface ChatTarget {
  readonly name: string;
  readonly kind: 'agent' | 'model';
}

/** A message of an earlier turn. */
export interface ChatMessage {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

/** How many messages `lastMessages` returns at most. */
export const MAX_LAST_MESSAGES = 4;

/** What a user says to an agent. */
export interface ChatTurn {
  readonly agent: string;
  readonly session: { readonly key: string; readonly isOwn: boolean };
  /** A message, or decisions about all tool calls that wait for approval. */
  readonly input: string | readonly ChatDecision[];
  readonly signal: AbortSignal;
}

/** A conversation that the server keeps. */
export interface ChatSession {
  readonly key: string;
  readonly title: string;
  readonly updatedAt: Date;
}

/** A decision about a tool call that waits for approval. */
export interface ChatDecision {
  readonly id: string;
  readonly approve: boolean;
  readonly reason?: string | undefined;
}

export type ChatEvent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly name: string; readonly input: string }
  | { readonly kind: 'result'; readonly name: string; readonly content: string; readonly isError: boolean }
  | ChatApproval
  | { readonly kind: 'usage'; readonly input: number; readonly output: number }
  /** The answer was cut off, by a limit or a filter. */
  | { readonly kind: 'cut'; readonly reason: string }
  /** Side information for the user. */
  | { readonly kind: 'note'; readonly text: string };

/** A tool call that waits for the user's decision. */
export interface ChatApproval {
  readonly kind: 'approval';
  readonly id: string;
  readonly name: string;
  readonly input: string;
}

/** A conversation or a turn failed. The message says why, and what to do about it. */
export class ChatError extends Error {
  override readonly name = 'ChatError';
}

/** The name of a tool as the configuration writes it: `files/read_text_file`, or `clock`. */
export function toolName(entry: string, name: string): string {
  if (name === '') return 'a tool';
  return entry === '' || entry === name ? name : `${entry}/${name}`;
}
