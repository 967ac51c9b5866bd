import type { Incoming } from '@plugboard/channel-kit';

/** The bot and its workspace, as `auth.test` names them. */
export interface Account {
  readonly team: string;
  readonly teamName: string;
  /** The id of the bot's user, which mentions have. */
  readonly user: string;
  readonly name: string;
}

/** Where a reply goes. */
export interface SlackTo {
  readonly channel: string;
  /** The first message of the thread. Without it the reply is an ordinary post. */
  readonly thread?: string;
  /** The sender and its workspace: a stream outside of direct messages has them as recipients. */
  readonly user: string;
  readonly team: string;
  /** A message that is older than the reply. */
  readonly since?: string;
}

/** An image that was sent. */
export interface SlackImage {
  readonly url: string;
  /** Bytes. */
  readonly size: number;
}

export type SlackIncoming = Incoming<SlackTo, SlackImage>;

/** What arrived, and what has to be looked up before it is known whether it is for the agent. */
export interface Arrival {
  readonly incoming: SlackIncoming;
  /** The workspace of the sender, if the event says it. */
  readonly team?: string | undefined;
  /** In a thread, without a mention: it is for the agent if the agent answers in the thread. */
  readonly follows: boolean;
  /** The author of the thread's first message, if that is another person. */
  readonly begunBy?: string | undefined;
}
