import { randomBytes } from 'node:crypto';
import type { PluginState } from '@plugboard/kernel';
import { type Extra, parseJson } from '@plugboard/kernel/contracts';
import { openText, sealText } from '@plugboard/turn-routes';

/**
 * What a model connection attached to the step that ended an answer: its thinking, and the
 * signatures of it.
 */
export interface StepExtras {
  readonly message?: Extra | undefined;
  /** By the ids of all calls of the step. */
  readonly calls: Readonly<Record<string, Extra | null>>;
}

/**
 * The signature of every thinking block. Clients want one, and send it back; the server drops the
 * block then. What a connection needs of its own thinking is sealed, or kept with a session.
 */
export const SIGNATURE = Buffer.from('plugboard: not kept').toString('base64');

/** The block that carries the sealed extras of a step. */
export interface SealedBlock {
  readonly type: 'redacted_thinking';
  readonly data: string;
}

/** Seals the extras of answers for one project, and opens what comes back. */
export interface ExtrasSeal {
  seal(extras: StepExtras): string;
  /** Undefined for a token that this server did not make, or made for another project. */
  open(token: string): StepExtras | undefined;
}

/** Bytes. */
const KEY_LENGTH = 32;
const KEY = 'key';

/**
 * Extras travel through the client, which keeps the conversation: sealed, in a block that clients
 * send back unread (`redacted_thinking`). The key is kept with the state of the entry, so that
 * tokens work after a restart and on every server with the same store.
 */
export class SealedExtras {
  readonly #state: PluginState;
  #key: Promise<Uint8Array> | undefined;

  constructor(state: PluginState) {
    this.#state = state;
  }

  /** Undefined if the store cannot be reached: an answer does not depend on its thinking. */
  async for(project: string): Promise<ExtrasSeal | undefined> {
    this.#key ??= this.#load();
    const key = await this.#key.catch((): undefined => {
      this.#key = undefined; // the next request tries again
    });
    return (
      key && { seal: (extras) => sealText(JSON.stringify(extras), key, project), open: (token) => opened(token, key, project) }
    );
  }

  async #load(): Promise<Uint8Array> {
    if ((await this.#state.get(KEY)) === undefined) await this.#state.put(KEY, randomBytes(KEY_LENGTH).toString('base64'));
    return Buffer.from(String(await this.#state.get(KEY)), 'base64');
  }
}

/** What opens is what this server has sealed. */
function opened(token: string, key: Uint8Array, project: string): StepExtras | undefined {
  const text = openText(token, key, project);
  return text === undefined ? undefined : (parseJson(text) as StepExtras);
}
