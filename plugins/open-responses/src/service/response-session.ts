/** The session that a response runs in. */
export interface ResponseSession {
  readonly key: string;
  /** The opaque id. */
  readonly conversation: string;
  /** Whether the session exists for this chain of responses, and was not named by a request. */
  readonly isChain: boolean;
  /** Whether it was copied for this response. */
  readonly isCopy: boolean;
}
