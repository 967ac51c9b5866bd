/**
 * An item of a conversation, in the shapes of the reference protocol: messages, reasoning, calls
 * and their results, requests for approval and decisions.
 */
export interface Item {
  /** See `itemId`. That of a request for approval is as in the response that asked. */
  readonly id: string;
  readonly type: string;
  readonly [field: string]: unknown;
}
