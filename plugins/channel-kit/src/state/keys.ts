import { createHash } from 'node:crypto';

/** Milliseconds in which a delivery of a message is recognized. */
export const IDS_EXPIRE = 3 * 24 * 60 * 60_000;
/** Milliseconds that a reply that failed stays in the list. */
export const FAILED_EXPIRES = 30 * 24 * 60 * 60_000;
/** Milliseconds that a pairing code is good for. */
export const CODE_EXPIRES = 60 * 60_000;

/**
 * The keys of a channel in `ctx.state`. `seq` is the place of a message in the order of all; the
 * reply to it has the same.
 */
export const KEYS = {
  /** A message that was taken and is not done: `StoredMessage`. */
  messages: 'kit/in/',
  message: (seq: string) => `kit/in/${seq}`,
  /** How many crashes have cut its turn. */
  cuts: 'kit/cut/',
  cut: (seq: string) => `kit/cut/${seq}`,
  /** A delivery that was taken. */
  id: (id: string) => `kit/id/${digest(id)}`,
  /** A reply that the platform has not: `StoredReply`. */
  replies: 'kit/out/',
  reply: (seq: string) => `kit/out/${seq}`,
  /** How far sending it came: `Progress`. */
  progress: (seq: string) => `kit/sent/${seq}`,
  /** What the platform keeps about it. */
  kept: (seq: string) => `kit/kept/${seq}`,
  /** A reply that failed for good: `FailedReply`. */
  failures: 'kit/failed/',
  failure: (seq: string) => `kit/failed/${seq}`,
  /** What was chosen in a chat: `ChatSettings`. */
  chat: (lane: string) => `kit/chat/${digest(lane)}`,
  /** A sender who waits to be paired: `PairingRequest`. */
  requests: 'kit/request/',
  request: (sender: string) => `kit/request/${digest(sender)}`,
  /** A sender who is paired: `PairedSender`. */
  allPaired: 'kit/paired/',
  paired: (sender: string) => `kit/paired/${digest(sender)}`,
  /** What a server on standby took for the one that has the platform: `Relayed`. */
  relayed: 'kit/relayed/',
  /** The name that the server holds which has the platform. */
  platform: 'kit/platform',
  /** Set by a stop that cut nothing: the next start counts no crash. */
  stopped: 'kit/stopped',
  /** A piece of a value that is too large for one key. */
  piece: (key: string, index: number) => `kit/piece/${key.slice('kit/'.length)}/${index}`,
} as const;

/** A chat, or a thread in it: it has a session, and a queue. */
export function laneOf({ chat, thread }: { readonly chat: string; readonly thread?: string | undefined }): string {
  return thread === undefined ? chat : `${chat}\n${thread}`;
}

/** Makes a key of any text. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
