import { heapLimit } from '@plugboard/kernel/contracts';
import type { HttpConfig } from '../config.js';
import { descriptorLimit } from './descriptor-limit.js';

/** Bytes of heap that one connection may cost: parser, buffers, request objects. */
const HEAP_PER_CONNECTION = 64 * 1024;

/**
 * The limit `maxConnections`. Unless it is set, callers get half of the process's file descriptors;
 * a turn needs one more for its model server, and stores and tools need some.
 */
export function maxConnectionsOf({ maxConnections }: HttpConfig): number {
  return maxConnections ?? Math.min(Math.floor(descriptorLimit() / 2), Math.floor(heapLimit() / HEAP_PER_CONNECTION));
}
