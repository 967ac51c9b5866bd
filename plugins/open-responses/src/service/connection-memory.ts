import type { Message } from '@plugboard/kernel';

/** Sequences of responses on one connection. */
export const MOST_LANES = 32;
/** Bytes of the conversations that one connection holds, as JSON. */
const MOST_BYTES = 4 * 1024 * 1024;

/** A finished response, as much as its continuation needs. */
interface RememberedResponse {
  readonly id: string;
  readonly agent: string;
  /** The whole conversation, for a response that is not stored; undefined for one that is. */
  readonly messages: readonly Message[] | undefined;
}

/**
 * What a connection remembers of its responses: the last one of each lane. Discarded when the
 * connection closes.
 */
export class ConnectionMemory {
  readonly #pool: ConnectionMemoryPool;
  readonly #lanes = new Map<string, { readonly response: RememberedResponse; readonly bytes: number }>();
  #bytes = 0;
  #closed = false;

  constructor(pool: ConnectionMemoryPool) {
    this.#pool = pool;
  }

  /** Bytes that it holds. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Remembers a response as the last of its lane. One that is too large is not remembered. */
  put(lane: string, response: RememberedResponse): void {
    if (this.#closed) return;
    this.#forget(lane);
    const bytes = response.messages ? Buffer.byteLength(JSON.stringify(response.messages)) : 0;
    if (bytes <= MOST_BYTES) {
      this.#lanes.set(lane, { response, bytes });
      this.#bytes += bytes;
    }
    for (const oldest of this.#lanes.keys()) {
      if (this.#bytes <= MOST_BYTES && this.#lanes.size <= MOST_LANES) break;
      this.#forget(oldest);
    }
    this.#pool.update(this);
  }

  last(lane: string): RememberedResponse | undefined {
    return this.#lanes.get(lane)?.response;
  }

  find(id: string): RememberedResponse | undefined {
    for (const { response } of this.#lanes.values()) if (response.id === id) return response;
    return undefined;
  }

  /** Forgets a response: its continuation failed. */
  evict(id: string): void {
    for (const [lane, { response }] of this.#lanes) if (response.id === id) this.#forget(lane);
    this.#pool.update(this);
  }

  /** Forgets everything. */
  clear(): void {
    this.#lanes.clear();
    this.#bytes = 0;
    this.#pool.update(this);
  }

  /** The connection has closed: nothing is remembered from now on. */
  close(): void {
    this.#closed = true;
    this.clear();
  }

  #forget(lane: string): void {
    const entry = this.#lanes.get(lane);
    if (!entry) return;
    this.#lanes.delete(lane);
    this.#bytes -= entry.bytes;
  }
}

/**
 * The memories of all connections together. Beyond its limit, the largest memory is cleared: its
 * connection then has to send its conversation again, as after a reconnect.
 */
export class ConnectionMemoryPool {
  readonly #limit: number;
  /** Memories that hold something, by what was counted for them. */
  readonly #counted = new Map<ConnectionMemory, number>();
  #bytes = 0;

  /** @param limit in bytes of JSON. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Bytes of all memories. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A memory has changed. */
  update(memory: ConnectionMemory): void {
    this.#bytes += memory.bytes - (this.#counted.get(memory) ?? 0);
    if (memory.bytes === 0) this.#counted.delete(memory);
    else this.#counted.set(memory, memory.bytes);
    while (this.#bytes > this.#limit) this.#largest()?.clear();
  }

  #largest(): ConnectionMemory | undefined {
    let largest: ConnectionMemory | undefined;
    for (const memory of this.#counted.keys()) if (!largest || memory.bytes > largest.bytes) largest = memory;
    return largest;
  }
}
