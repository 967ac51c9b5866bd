import type { Message } from '@plugboard/kernel';
import { heapLimit } from '@plugboard/kernel/contracts';
import { type Carried, isNothing } from './carried.js';

/** Values of `stream_id` on one connection. */
export const MAX_STREAMS = 32;
/** Bytes of the conversations that one connection holds, as JSON. */
const MAX_BYTES = 4 * 1024 * 1024;
/** The same for all connections together. */
const MAX_POOL_BYTES = Math.min(128 * 1024 * 1024, heapLimit() / 16);

/** What continuing a finished response needs. */
interface RememberedResponse {
  readonly id: string;
  readonly agent: string;
  /** The key of the session that the request named. */
  readonly session?: string | undefined;
  /** The whole conversation, for a response that is in no session; undefined for one that is. */
  readonly messages: readonly Message[] | undefined;
  /** What was said before these messages, if the response is a summary of it. */
  readonly summary?: string | undefined;
  readonly carried: Carried;
}

/**
 * The last response of each stream of a connection, with its conversation if it is not stored.
 * Discarded when the connection closes.
 */
export class ConnectionMemory {
  readonly #pool: ConnectionMemoryPool;
  readonly #streams = new Map<string, { readonly response: RememberedResponse; readonly bytes: number }>();
  #bytes = 0;
  #closed = false;

  constructor(pool: ConnectionMemoryPool) {
    this.#pool = pool;
  }

  /** Bytes that it holds. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Remembers a response as the last of its stream. One that is too large is not remembered. */
  put(stream: string, response: RememberedResponse): void {
    if (this.#closed) return;
    this.forget(stream);
    const { messages, summary = '', carried } = response;
    const kept = [...(messages ? [messages] : []), ...(isNothing(carried) ? [] : [carried])];
    const bytes = kept.reduce((sum, one) => sum + Buffer.byteLength(JSON.stringify(one)), Buffer.byteLength(summary));
    if (bytes > MAX_BYTES) return;
    this.#streams.set(stream, { response, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#streams.keys()) {
      if (this.#bytes <= MAX_BYTES && this.#streams.size <= MAX_STREAMS) break;
      this.forget(oldest);
    }
    this.#pool.update(this);
  }

  last(stream: string): RememberedResponse | undefined {
    return this.#streams.get(stream)?.response;
  }

  find(id: string): RememberedResponse | undefined {
    for (const { response } of this.#streams.values()) if (response.id === id) return response;
    return undefined;
  }

  /** Forgets the last response of a stream. */
  forget(stream: string): void {
    this.#bytes -= this.#streams.get(stream)?.bytes ?? 0;
    this.#streams.delete(stream);
    this.#pool.update(this);
  }

  /** Forgets a response: its continuation failed. */
  evict(id: string): void {
    for (const [stream, { response }] of this.#streams) if (response.id === id) this.forget(stream);
  }

  /** Forgets everything. */
  clear(): void {
    for (const stream of this.#streams.keys()) this.forget(stream);
  }

  /** Forgets everything, and remembers nothing from now on: the connection has closed. */
  close(): void {
    this.#closed = true;
    this.clear();
  }
}

/**
 * The memories of all connections together. Beyond its limit, the largest memory is cleared: its
 * client then has to send its conversation again, as after a reconnect.
 */
export class ConnectionMemoryPool {
  readonly #limit: number;
  /** Those that are not empty. */
  readonly #memories = new Set<ConnectionMemory>();

  /** @param limit in bytes of JSON. */
  constructor(limit: number = MAX_POOL_BYTES) {
    this.#limit = limit;
  }

  /** Bytes of all memories. */
  get bytes(): number {
    let bytes = 0;
    for (const memory of this.#memories) bytes += memory.bytes;
    return bytes;
  }

  /** A memory has changed. */
  update(memory: ConnectionMemory): void {
    if (memory.bytes === 0) this.#memories.delete(memory);
    else this.#memories.add(memory);
    while (this.bytes > this.#limit) [...this.#memories].reduce((a, b) => (b.bytes > a.bytes ? b : a)).clear();
  }
}
