/** How a call of a caller's tool is shown to the caller. */
export interface CallForm {
  readonly type: 'function' | 'custom';
  /** The tool's name in its namespace. */
  readonly name: string;
  readonly namespace: string | undefined;
}
