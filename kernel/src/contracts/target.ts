/** What answers under a name: an agent, or a raw model wrapped as one. */
export interface Target {
  readonly kind: 'agent' | 'model';
  /** Its own name, which differs from the requested one where the default agent stands in. */
  readonly name: string;
  readonly project: string;
  /** What becomes of tools that a caller brings. Undefined: each protocol has its own default. */
  readonly clientTools: 'ignore' | 'passthrough' | undefined;
  /** Changes when the agent's configuration does; 12 hexadecimal digits. */
  readonly fingerprint: string;
  /** What user messages may hold. */
  readonly input: readonly ('text' | 'image')[];
  /** The connection that is asked first. */
  readonly connection: string;
  /** What a turn does whose session is busy, unless its request says otherwise. */
  readonly onBusy: BusyMode;
  /** What callers are shown of its tool calls, where a surface shows any: all, their names alone, or nothing. */
  readonly toolVisibility: 'full' | 'names' | 'none';
  /** What becomes of a turn of a session whose last reader has gone. */
  readonly onDisconnect: 'cancel' | 'continue';
  /** Whether a caller's sampling parameter reaches the model: the agent does not set it itself, and the connection takes it. */
  forwardsParam(param: string): boolean;
}

/** What a turn does whose session is busy with another: wait for it, be refused, or take its place. */
export type BusyMode = 'enqueue' | 'reject' | 'interrupt';
