import type { Reservation } from '@plugboard/transport-http';
import { overloaded } from '../messages/refusals.js';

/** Memory of a message as a multiple of its size: the bytes, the text and the parsed request. */
const COPIES = 3;
/** Bytes before the payload of a ping or pong from a client: the head of the frame and its mask. */
const CONTROL_FRAME_HEAD = 6;

/**
 * Counts the memory of what a client sends: a message until it is complete, and a request until its
 * response has ended.
 */
export class Inbox {
  readonly #memory: Reservation;
  /** Bytes since the last complete message. */
  #arriving = 0;
  /** Bytes of requests whose responses have not ended. */
  #requests = 0;

  constructor(memory: Reservation) {
    this.#memory = memory;
  }

  /** The option that sets the limit. */
  get setting(): string {
    return this.#memory.setting;
  }

  /** Bytes have arrived. Returns whether there is memory for them. */
  arrived(bytes: number): boolean {
    this.#arriving += bytes;
    return this.#count();
  }

  /** A ping or a pong has arrived, possibly within a message. */
  controlFrame(payload: Buffer): void {
    this.#arriving -= CONTROL_FRAME_HEAD + payload.length;
  }

  /** A message is complete. */
  messageArrived(): void {
    this.#arriving = 0;
    this.#count();
  }

  /**
   * Counts a request until the returned function is called.
   *
   * @throws HttpError 503 without memory for it.
   */
  reserve(bytes: number): () => void {
    this.#requests += bytes;
    const release = () => {
      this.#requests -= bytes;
      this.#count();
    };
    if (this.#count()) return release;
    release();
    throw overloaded(this.setting);
  }

  #count(): boolean {
    return this.#memory.resize((this.#arriving + this.#requests) * COPIES);
  }
}
