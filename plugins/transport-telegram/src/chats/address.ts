/** Where replies go: a chat, and its topic. */
export interface Address {
  readonly chat: number;
  readonly thread?: number | undefined;
}
