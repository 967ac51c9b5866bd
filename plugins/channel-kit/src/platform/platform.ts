/**
 * A platform where people write: what a channel has to know of it. Everything else is the kit's.
 *
 * 1. `run` receives from the platform until its signal aborts. Each message goes to
 *    `inbox.receive`, which resolves once it is durable. Only then may the platform be told, by an
 *    offset, an acknowledgement or an answer.
 * 2. The kit runs a turn for each message, in order per chat. Meanwhile it shows the answer as it
 *    grows (`live`), if the platform can.
 * 3. The reply is committed with the turn. The kit splits it (`split`) and calls `send` for each
 *    part until the platform takes it, also after a restart.
 *
 * `To` is where a reply goes, `Kept` what the platform keeps about a reply, `Image` what it needs
 * to load an image. All three are JSON: they are stored, and come back after a restart.
 *
 * Keys of `ctx.state` that begin with `kit/` are the kit's. All others are the platform's.
 */
export interface Platform<To = unknown, Kept = unknown, Image = unknown> {
  /** For people, and in the claims of the principal: `telegram`. */
  readonly name: string;
  /**
   * Whether messages come by HTTP, to any server. By default only the server that has the platform
   * calls `run`; otherwise each does, and what the others are given is stored for that one.
   */
  readonly receivesAnywhere?: boolean;
  /**
   * Receives until the signal aborts. Says `inbox.connected` once the platform is reached. If it
   * throws or returns earlier, the entry is not ready, the log has one line, and `run` is called
   * again: after 1 s, then twice as long, at most 60 s.
   */
  run(inbox: ChannelInbox<To, Image>, signal: AbortSignal): Promise<void>;
  /** Splits a text into the messages that the platform takes. Equal for equal texts. */
  split(text: string): readonly string[];
  /** Sends one part of a reply. A throw is `later`. The signal aborts when the entry stops. */
  send(message: Outgoing<To, Kept>, signal: AbortSignal): Promise<SendResult<Kept>>;
  /** Shows an answer while it grows. Undefined where the chat has no such thing. */
  live?(answer: GrowingAnswer<To, Kept>): LiveAnswer | undefined;
  /**
   * Loads an image of a message, of up to 10 MB.
   * @returns undefined if it is gone or too large. @throws Error if a later attempt may succeed.
   */
  loadImage?(image: Image, signal: AbortSignal): Promise<Uint8Array | undefined>;
  /** Whether the sender of a message is told by the receipt `full`: no notice is sent then. */
  readonly tellsFull?: boolean;
}

/** Where a platform hands in what arrives. */
export interface ChannelInbox<To = unknown, Image = unknown> {
  /**
   * Takes messages, all or none, in their order. Resolves once they are durable, together with
   * `state`: values for keys of `ctx.state`, `undefined` removes one.
   *
   * @returns what became of each.
   * @throws Error if the store fails, or the entry does not run: the platform is not told, and
   *   delivers them again.
   */
  receive(messages: readonly Incoming<To, Image>[], state?: Readonly<Record<string, unknown>>): Promise<readonly Receipt[]>;
  /** The platform is reached, as this account. */
  connected(account?: string): void;
  /**
   * The platform is not reached, or refuses the entry. The first call of a row is logged; it is
   * what `run` may call when it tries on by itself.
   * @param reason half a sentence with the cause and the cure, without secrets.
   */
  failed(reason: string): void;
}

/**
 * What became of a message: it will run; it was taken before; its sender may not; its chat's queue
 * is full; it is not for the agent. Only `full` may be delivered again.
 */
export type Receipt = 'taken' | 'known' | 'refused' | 'full' | 'ignored';

/** A message that arrived. Bots, own messages, edits and posts of channels are left out before. */
export interface Incoming<To = unknown, Image = unknown> {
  /**
   * Names of the delivery and of the message, unique in the entry: begin them with the account. If
   * one of them was taken within 3 days, the message is `known`.
   */
  readonly ids: readonly string[];
  /** Up to 256 bytes without control characters, as are `thread` and the sender's id. */
  readonly chat: string;
  /** A topic or thread, which has a session and a queue of its own. */
  readonly thread?: string | undefined;
  /** Where replies go. */
  readonly to: To;
  readonly sender: { readonly id: string; readonly name?: string | undefined };
  /** What the agent gets, without a mention of the bot. A command begins with `/`. */
  readonly text: string;
  /** A message of somebody else that this one replies to. */
  readonly quoted?: string | undefined;
  /** Loaded when the turn runs. */
  readonly images?: readonly Image[] | undefined;
  readonly isPrivate: boolean;
  /** Whether it mentions the bot, replies to it, or is a command. */
  readonly isAddressed: boolean;
  /** The line of a button that was pressed. The text is not read. A late press does nothing. */
  readonly press?: string | undefined;
  /**
   * Ends an answer, because a stop button was pressed: `id` of the `GrowingAnswer`, or true for the
   * one that runs. The text is not read.
   */
  readonly stops?: string | true | undefined;
  /** What it has besides text and images: `a voice message`. Answered with one line, no turn. */
  readonly unsupported?: string | undefined;
  /** The platform's id of the message, if replies name it (`Outgoing.replyTo`). */
  readonly id?: string | undefined;
}

/** A part of a reply. */
export interface Outgoing<To = unknown, Kept = unknown> {
  /** The same for all parts of a reply, and in each attempt: `msg_` and 20 letters and digits. */
  readonly id: string;
  /** From 0. */
  readonly index: number;
  readonly count: number;
  readonly chat: string;
  readonly to: To;
  readonly text: string;
  /** The answer of an agent; why there is none; what the channel itself says. */
  readonly kind: 'reply' | 'failed' | 'notice';
  /** When the reply was made, in milliseconds since the epoch. */
  readonly at: number;
  /** Of the last part. A press is handed in as `Incoming.press` with the line. */
  readonly buttons?: readonly Button[] | undefined;
  /** The agent that answered. */
  readonly agent?: string | undefined;
  /** `Incoming.id` of what it replies to. */
  readonly replyTo?: string | undefined;
  /**
   * Whether an earlier attempt may have arrived, because no answer came or the process died: a
   * platform that can tell is asked first.
   */
  readonly mayHaveArrived: boolean;
  /** What was kept last: by `SendResult.kept` of an earlier part, or while the answer grew. */
  readonly kept?: Kept | undefined;
}

/** A button, and the line that pressing it says: `approve K7M2QX`. */
export interface Button {
  readonly label: string;
  readonly line: string;
}

/** What came of sending a part. */
export type SendResult<Kept = unknown> =
  /** The platform has it. `kept` is stored before the next part is sent. */
  | { readonly kind: 'sent'; readonly kept?: Kept | undefined }
  /**
   * It is tried again, for a day. With `after`, in milliseconds, nothing is sent to the chat until
   * then. `reason` is a clause for operators.
   */
  | { readonly kind: 'later'; readonly reason: string; readonly after?: number | undefined }
  /** It never will: the reply goes to the list of failed ones. */
  | { readonly kind: 'never'; readonly reason: string };

/** An answer that begins to grow. */
export interface GrowingAnswer<To = unknown, Kept = unknown> {
  /** `Outgoing.id` of the reply that it will be. The same after a crash. */
  readonly id: string;
  readonly chat: string;
  readonly to: To;
  readonly sender: { readonly id: string; readonly name?: string | undefined };
  /** What was kept before a crash cut the answer. */
  readonly kept?: Kept | undefined;
  /** Keeps something for `send` and for the time after a crash. Resolves once it is durable. */
  keep(kept: Kept): Promise<void>;
}

/** Shows one answer. The kit calls one method at a time, and none while a chat has to wait. */
export interface LiveAnswer {
  /** The least milliseconds between two calls of `show`. */
  readonly every: number;
  /** Milliseconds after which `show` is called again without a change. */
  readonly renew?: number;
  /**
   * Shows the text so far: empty at first, whole each time. If it throws, the answer is not shown
   * any further.
   * @returns milliseconds in which nothing may be sent to the chat, if the platform says so.
   */
  show(text: string, signal: AbortSignal): Promise<number | undefined>;
  /**
   * The turn has ended. Its reply, if it has one, is sent after that. Not called while the chat has
   * to wait: `send` finds what was kept.
   */
  end(): Promise<void>;
}
