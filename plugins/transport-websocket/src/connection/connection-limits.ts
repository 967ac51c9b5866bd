/** The limits of connections, as numbers: bytes and milliseconds. */
export interface ConnectionLimits {
  readonly maxFrameSize: number;
  readonly maxBuffered: number;
  readonly pingInterval: number;
  readonly stallTimeout: number;
  readonly maxAge: number;
}
