/** The bot and its workspace, as `auth.test` names them. */
export interface Account {
  readonly team: string;
  readonly teamName: string;
  /** The organization of the workspace, which some events have in its place. */
  readonly enterprise?: string | undefined;
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

/** Begins the action id of each button that this plugin sends. */
export const ACTION = 'plugboard_line';
