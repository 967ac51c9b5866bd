import { randomBytes } from 'node:crypto';
import type { PluginState } from '@plugboard/kernel';

/** Bytes. */
const KEY_LENGTH = 32;

/**
 * The secret key that an entry keeps with its state, so that what it seals works after a restart,
 * and on every server with the same store. Who needs it first makes it: of several servers that
 * start together one does, and the others read its key.
 */
export class OwnKey {
  readonly #state: PluginState;
  readonly #name: string;
  #key: Promise<Uint8Array> | undefined;

  constructor(state: PluginState, name: string) {
    this.#state = state;
    this.#name = name;
  }

  /** The key. Rejects if the store fails; the next call tries again. */
  load(): Promise<Uint8Array> {
    this.#key ??= this.#read().catch((error) => {
      this.#key = undefined;
      throw error;
    });
    return this.#key;
  }

  async #read(): Promise<Uint8Array> {
    let stored = await this.#state.get(this.#name);
    if (stored === undefined) {
      const made = randomBytes(KEY_LENGTH).toString('base64');
      stored = (await this.#state.compareAndSet(this.#name, undefined, made)) ? made : await this.#state.get(this.#name);
    }
    const key = Buffer.from(String(stored), 'base64');
    if (key.length !== KEY_LENGTH) throw new Error(`the session store did not keep the key ${this.#name}`);
    return key;
  }
}
