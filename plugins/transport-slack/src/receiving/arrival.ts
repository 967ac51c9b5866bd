import type { Incoming } from '@plugboard/channel-kit';
import type { SlackImage, SlackTo } from '../base/slack.js';

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
