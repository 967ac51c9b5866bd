import { createHash } from 'node:crypto';
import type { ProviderKind } from '../provider/provider-kind.js';

/** The ids that almost every provider accepts, and those that Mistral accepts. */
const FORMS = { any: /^[A-Za-z0-9_-]{1,64}$/, alnum9: /^[A-Za-z0-9]{9}$/ } as const;

/** A tool call of the conversation at the provider. */
interface KnownCall {
  readonly id: string;
  readonly name: string;
}

/** The tool calls of a request, with names and ids that are valid at the provider, each once. */
export class CallIds {
  readonly #calls = new Map<string, KnownCall>();
  readonly #used = new Set<string>();
  readonly #form: keyof typeof FORMS;
  readonly #namesBeginWithLetter: boolean;

  constructor({ callIds, namesBeginWithLetter = false }: Pick<ProviderKind, 'callIds' | 'namesBeginWithLetter'>) {
    this.#form = callIds ?? 'any';
    this.#namesBeginWithLetter = namesBeginWithLetter;
  }

  /**
   * @param id that of the conversation.
   * @param own the provider's own id, if the provider made the call.
   * @returns the id and the name to send.
   */
  add(id: string, name: string, own?: string): KnownCall {
    const wanted = own !== undefined && !this.#used.has(own) ? own : this.#valid(id);
    const sent = this.#used.has(wanted) ? this.#valid(`${id} ${this.#used.size}`) : wanted;
    this.#used.add(sent);
    const call = { id: sent, name: this.#namesBeginWithLetter && !/^[A-Za-z_]/.test(name) ? `_${name}`.slice(0, 64) : name };
    this.#calls.set(id, call);
    return call;
  }

  /** The call that a result belongs to. */
  get(id: string): KnownCall | undefined {
    return this.#calls.get(id);
  }

  #valid(id: string): string {
    if (FORMS[this.#form].test(id)) return id;
    const digest = createHash('sha256').update(id).digest('hex');
    return this.#form === 'any' ? `call_${digest.slice(0, 24)}` : digest.slice(0, 9);
  }
}
