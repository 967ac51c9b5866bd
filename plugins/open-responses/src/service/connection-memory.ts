import type { Message } from '@plugboard/kernel';

/** Sequences of responses on one connection. */
export const MOST_LANES = 32;
/** Bytes of the conversations that one connection holds, as JSON. */
const MOST_BYTES = 4 * 1024 * 1024;

/** A finished response, as much as its continuation needs. */
export interface RememberedResponse {
  readonly id: string;
  readonly agent: string;
  /** The whole conversation, for a response that is not stored; undefined for one that is. */
  readonly messages: readonly Message[] | undefined;
}

/** What a connection remembers of its responses: the last one of each lane. It is gone when the connection closes. */
export class ConnectionMemory {
  readonly #lanes = new Map<string, { readonly response: RememberedResponse; readonly bytes: number }>();
  #bytes = 0;

  /** Remembers a response as the last of its lane. One that is too large is not remembered. */
  put(lane: string, response: RememberedResponse): void {
    this.#forget(lane);
    const bytes = response.messages ? Buffer.byteLength(JSON.stringify(response.messages)) : 0;
    if (bytes > MOST_BYTES) return;
    this.#lanes.set(lane, { response, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#lanes.keys()) {
      if (this.#bytes <= MOST_BYTES && this.#lanes.size <= MOST_LANES) return;
      this.#forget(oldest);
    }
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
  }

  #forget(lane: string): void {
    const entry = this.#lanes.get(lane);
    if (!entry) return;
    this.#lanes.delete(lane);
    this.#bytes -= entry.bytes;
  }
}
