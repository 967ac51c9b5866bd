/** An agent, or a raw model wrapped as an agent. @experimental */
export interface Target {
  readonly kind: 'agent' | 'model';
  /** Its own name. Differs from the requested name if the default agent answers. */
  readonly name: string;
  readonly project: string;
  /** What happens to tools in a request. If undefined, the protocol's default. */
  readonly clientTools: 'ignore' | 'passthrough' | undefined;
  /** 12 hexadecimal digits that change with the agent's configuration. */
  readonly fingerprint: string;
  /** Content types of user messages. */
  readonly input: readonly ('text' | 'image')[];
  /** The first model connection. */
  readonly connection: string;
  /** What a turn does if its session is busy, unless the request says otherwise. */
  readonly onBusy: BusyMode;
  /** What callers see of its tool calls, on routes that show them. */
  readonly toolVisibility: 'full' | 'names' | 'none';
  /** What happens to a session turn whose last reader disconnects. */
  readonly onDisconnect: 'cancel' | 'continue';
  /** Whether a caller's parameter reaches the model: supported, and not set by the agent. */
  forwardsParam(param: string): boolean;
  /**
   * The name at the model of a tool that the agent has, or had.
   *
   * @param entry the entry that offers it; empty if unknown.
   * @param tool the tool's own name.
   */
  nameAtModel(entry: string, tool: string): string;
}

/** What a turn does if its session is busy: wait, be refused, or interrupt. @experimental */
export type BusyMode = 'enqueue' | 'reject' | 'interrupt';
