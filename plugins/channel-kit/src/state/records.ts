import type { Button, Incoming } from '../platform/platform.js';

/** A message in the inbox. */
export interface StoredMessage extends Pick<Incoming, 'chat' | 'thread' | 'to' | 'sender' | 'text'> {
  /** The id of the reply. The same after a crash. */
  readonly reply: string;
  readonly quoted?: string | undefined;
  readonly images?: readonly unknown[] | undefined;
  readonly press?: string | undefined;
  readonly stops?: string | true | undefined;
  /** The platform's id of the message. */
  readonly id?: string | undefined;
}

/** A reply in the outbox. */
export interface StoredReply {
  readonly id: string;
  readonly chat: string;
  readonly thread?: string | undefined;
  readonly to: unknown;
  readonly text: string;
  readonly kind: 'reply' | 'failed' | 'notice';
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly buttons?: readonly Button[] | undefined;
  readonly agent?: string | undefined;
  readonly replyTo?: string | undefined;
}

/** How far sending a reply has come. */
export interface Progress {
  /** The part that is next. */
  readonly index: number;
  /** Attempts that failed. */
  readonly attempts: number;
  /** When the first of them did, in milliseconds since the epoch. */
  readonly since?: number | undefined;
  /** When the next attempt is due. */
  readonly dueAt?: number | undefined;
  /** Whether the platform said so: nothing is sent to the chat until then. */
  readonly isPaused?: boolean | undefined;
}

/** A reply that failed for good. */
export interface FailedReply extends StoredReply {
  readonly reason: string;
  readonly attempts: number;
  readonly failedAt: number;
  readonly index: number;
  readonly kept?: unknown;
}

/** What was chosen in a chat. */
export interface ChatSettings {
  readonly agent?: string | undefined;
  /** How often `/new` was said. */
  readonly sessions?: number | undefined;
  /** What waits for approval in the session: ids of the requests by their codes. */
  readonly asks?: Readonly<Record<string, string>> | undefined;
  /** The sender whose turn asked. */
  readonly asker?: string | undefined;
}
