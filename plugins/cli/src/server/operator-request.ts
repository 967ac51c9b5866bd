import type { Channel, ChannelStatus } from '@plugboard/kernel/contracts';

/** The longest request, in bytes. */
export const MAX_REQUEST = 16 * 1024;
/** The longest answer, in bytes. Lists that are longer leave out their last rows. */
export const MAX_ANSWER = 8 * 1024 * 1024;

/** What an operator asks a running server: one line of JSON, answered by one line. */
export interface OperatorRequest {
  readonly command: 'channels' | 'pair' | 'outbox';
  /** Only this channel, by its key under `transports`. */
  readonly entry?: string | undefined;
  /** What is changed before the lists are answered. */
  readonly change?: OperatorChange | undefined;
}

/** A code to approve, a sender to remove, failed replies to send again or to drop. */
export type OperatorChange =
  | { readonly kind: 'approve' | 'remove' | 'send' | 'drop'; readonly value: string }
  | { readonly kind: 'send-all' };

/** What `pair` and `outbox` show: of `T`, with the channel that it belongs to. */
type Row<T> = T & { readonly entry: string };
type ListOf<M extends (...args: never[]) => unknown> = Awaited<ReturnType<M>> extends readonly (infer T)[] ? T : never;
type Pairing = NonNullable<Channel['pairing']>;
type Outbox = NonNullable<Channel['outbox']>;

/** The answer of a server. Lists that the command does not show are empty. */
export interface OperatorAnswer {
  /** The keys of the server's channels. */
  readonly known: readonly string[];
  /** `server`: the process, as `askServers` knows it. */
  readonly channels: readonly (Row<ChannelStatus> & { readonly server?: number })[];
  readonly requests: readonly Row<ListOf<Pairing['requests']>>[];
  readonly paired: readonly Row<ListOf<Pairing['paired']>>[];
  readonly failed: readonly Row<ListOf<Outbox['failed']>>[];
  /** The channels and names of what was changed: a sender who was let in, or an id. */
  readonly changed: readonly { readonly entry: string; readonly name: string }[];
  /** Rows that the answer leaves out, because it would be too long. */
  readonly left: number;
}

/** What went wrong, in the words for an operator. */
export interface OperatorFailure {
  readonly error: string;
}
