import { parseDuration, parseSize } from '@plugboard/kernel';
import type { WebSocketConfig } from '../config.js';

/** The limits of one connection: sizes in bytes, times in milliseconds. */
export interface ConnectionLimits {
  readonly maxFrameSize: number;
  readonly maxBuffered: number;
  readonly pingInterval: number;
  readonly stallTimeout: number;
  readonly maxAge: number;
}

export function connectionLimits(config: WebSocketConfig): ConnectionLimits {
  return {
    maxFrameSize: parseSize(config.maxFrameSize),
    maxBuffered: parseSize(config.maxBuffered),
    pingInterval: parseDuration(config.pingInterval),
    stallTimeout: parseDuration(config.stallTimeout),
    maxAge: parseDuration(config.maxAge),
  };
}
