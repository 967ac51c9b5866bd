import { defineExtensionPoint } from '../../host/plugin/extension-point.js';

/**
 * What operators see of an entry that takes messages from a platform, and sends the answers back.
 * Discipline: by name, that of the entry.
 *
 * 1. `register` contributes it. Before `start` and after `stop`, its state is `connecting`.
 * 2. `plugboard channels`, `pair` and `outbox` ask the running server, which calls these methods.
 *    What is given is data that an operator has typed: an unknown code, sender or id changes
 *    nothing.
 * 3. A channel that can refuse strangers has `pairing`; one that keeps what it could not send has
 *    `outbox`.
 * 4. The entry's `Lifecycle.health` says the same as `status`: `ok` for `connected` and `standby`,
 *    else `failed`. `/readyz` follows it.
 *
 * @public
 */
export interface Channel {
  /** Returns the status from memory, without a side effect. */
  status(): ChannelStatus;
  readonly pairing?: ChannelPairing | undefined;
  readonly outbox?: ChannelOutbox | undefined;
}

/** The extension point of channels: `agent.channel`, by the name of the entry. @public */
export const Channels = defineExtensionPoint<Channel>('agent.channel', {
  discipline: 'by-name',
  shape: { status: 'function', 'pairing?': 'object', 'outbox?': 'object' },
  describe: (channel) => [{ kind: 'detail', label: 'platform', text: channel.status().platform }],
});

/** The status of a channel. Times are milliseconds since the epoch. @public */
export interface ChannelStatus {
  /** For example `telegram`. */
  readonly platform: string;
  /** What the platform calls the bot, once that is known. */
  readonly account?: string | undefined;
  /**
   * - `connecting`: it tries to reach the platform, or has not begun.
   * - `connected`: it works. Also while a connection has been lost for less than a minute.
   * - `standby`: another server has the platform; this one takes over if that ends.
   * - `failed`: the platform cannot be reached or refuses; it tries on.
   */
  readonly state: 'connecting' | 'connected' | 'standby' | 'failed';
  /**
   * Why, and what to do, in one line without a secret. While connected: why replies wait, or that
   * the connection was just lost.
   */
  readonly reason?: string | undefined;
  /** When the state began. */
  readonly since: number;
  /** Messages that wait for their turn to end. */
  readonly waiting: number;
  /** Replies that the platform has not acknowledged, and that are still tried. */
  readonly unsent: number;
  /** Replies that failed for good. */
  readonly failed: number;
}

/** Senders who ask to be let in. */
interface ChannelPairing {
  /** Those whose code still holds, the earliest first. */
  requests(): Promise<readonly PairingRequest[]> | readonly PairingRequest[];
  paired(): Promise<readonly PairedSender[]> | readonly PairedSender[];
  /**
   * Lets the sender of a code in, durably, and says so to the sender.
   * @param code in any case, with or without its hyphen.
   * @returns undefined for an unknown code.
   */
  approve(code: string): Promise<PairedSender | undefined>;
  /** Holds from the next message on. @returns false for a sender who is not paired. */
  remove(sender: string): Promise<boolean>;
}

/** A sender who waits. */
interface PairingRequest {
  readonly code: string;
  readonly sender: string;
  readonly name?: string | undefined;
  /** When the code ends, in milliseconds since the epoch. */
  readonly expires: number;
}

/** A sender who was let in. */
interface PairedSender {
  readonly sender: string;
  readonly name?: string | undefined;
  /** In milliseconds since the epoch. */
  readonly since: number;
}

/** Replies that failed for good, or wait. */
interface ChannelOutbox {
  /** The earliest first. */
  failed(): Promise<readonly FailedReply[]> | readonly FailedReply[];
  /** Sends one again. @returns false for an unknown id. */
  send(id: string): Promise<boolean>;
  /** Removes one. @returns false for an unknown id. */
  drop(id: string): Promise<boolean>;
  /**
   * Tries the replies that wait for their next attempt now, except where the platform said how long
   * to wait.
   * @returns their ids.
   */
  sendWaiting?(): readonly string[];
}

/** A reply that the platform did not take. */
interface FailedReply {
  /** Unique in the channel. */
  readonly id: string;
  readonly chat: string;
  readonly text: string;
  readonly reason: string;
  /** How often it was tried. */
  readonly attempts: number;
  /** In milliseconds since the epoch. */
  readonly failedAt: number;
}
