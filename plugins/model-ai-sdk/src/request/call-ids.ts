import { createHash } from 'node:crypto';

/** The ids that every provider accepts. */
const VALID_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** A tool call of the conversation at the provider. */
interface KnownCall {
  readonly id: string;
  readonly name: string;
}

/** The ids of the tool calls of a request: valid at every provider, and each used once. */
export class CallIds {
  readonly #calls = new Map<string, KnownCall>();
  readonly #used = new Set<string>();

  /**
   * @param id that of the conversation.
   * @param own the provider's own id, if the provider made the call.
   * @returns the id to send.
   */
  add(id: string, name: string, own?: string): string {
    const wanted = own !== undefined && !this.#used.has(own) ? own : valid(id);
    const sent = this.#used.has(wanted) ? valid(`${id} ${this.#used.size}`) : wanted;
    this.#used.add(sent);
    this.#calls.set(id, { id: sent, name });
    return sent;
  }

  /** The call that a result belongs to. */
  get(id: string): KnownCall | undefined {
    return this.#calls.get(id);
  }
}

function valid(id: string): string {
  return VALID_ID.test(id) ? id : `call_${createHash('sha256').update(id).digest('hex').slice(0, 24)}`;
}
