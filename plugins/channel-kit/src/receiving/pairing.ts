import type { Clock, IdSource } from '@plugboard/kernel';
import { NOTICES } from '../base/notices.js';
import type { ChannelState, Values } from '../state/channel-state.js';
import { CODE_EXPIRES, KEYS } from '../state/keys.js';

/** A sender who waits to be paired. */
export interface PairingRequest {
  /** `K7M2-QX4R` */
  readonly code: string;
  readonly sender: string;
  readonly name?: string | undefined;
  readonly chat: string;
  /** Where the sender is told. */
  readonly to: unknown;
  /** Milliseconds since the epoch. */
  readonly expires: number;
}

/** A sender who is paired. */
export interface PairedSender {
  readonly sender: string;
  readonly name?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/** Codes that wait at most. None pushes out another. */
const MAX_REQUESTS = 1_000;
/** As of approvals: without characters that look alike. */
const ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ23456789';
const CODE_LENGTH = 8;

/** Who may write, because an operator has let them in. */
export class Pairing {
  readonly #state: ChannelState;
  readonly #clock: Clock;
  readonly #ids: IdSource;
  /** By sender, the earliest first. */
  readonly #requests = new Map<string, PairingRequest>();

  constructor(state: ChannelState, clock: Clock, ids: IdSource) {
    this.#state = state;
    this.#clock = clock;
    this.#ids = ids;
  }

  async load(): Promise<void> {
    const found: PairingRequest[] = [];
    for await (const { value } of this.#state.all<PairingRequest>(KEYS.requests)) found.push(value);
    for (const request of found.sort((a, b) => a.expires - b.expires)) this.#requests.set(request.sender, request);
  }

  /** @throws Error if the state cannot be read: a look-up that fails is no stranger. */
  async isPaired(sender: string): Promise<boolean> {
    return (await this.#state.get(KEYS.paired(sender))) !== undefined;
  }

  /** The code of a sender, which waits already or is made. @returns undefined if too many wait. */
  async codeFor(
    { id: sender, name }: { readonly id: string; readonly name?: string | undefined },
    { chat, to }: { readonly chat: string; readonly to: unknown },
  ): Promise<string | undefined> {
    this.#forgetExpired();
    const known = this.#requests.get(sender);
    if (known) return known.code;
    if (this.#requests.size >= MAX_REQUESTS) return undefined;
    const request: PairingRequest = { code: this.#newCode(), sender, name, chat, to, expires: this.#clock.now() + CODE_EXPIRES };
    this.#requests.set(sender, request);
    try {
      await this.#state.store({}, this.#state.changes({ [KEYS.request(sender)]: request }, CODE_EXPIRES));
    } catch (error) {
      this.#requests.delete(sender);
      throw error;
    }
    return request.code;
  }

  requests(): readonly PairingRequest[] {
    this.#forgetExpired();
    return [...this.#requests.values()];
  }

  async paired(): Promise<readonly PairedSender[]> {
    const found: PairedSender[] = [];
    for await (const { value } of this.#state.all<PairedSender>(KEYS.allPaired)) found.push(value);
    return found.sort((a, b) => a.since - b.since);
  }

  /** Finds the request of a code, in any case, with or without its hyphen. */
  find(code: string): PairingRequest | undefined {
    const wanted = code.toUpperCase().replaceAll(/[\s-]/g, '');
    return this.requests().find((request) => request.code.replace('-', '') === wanted);
  }

  /** Lets the sender of a request in. @param values what is stored with it. */
  async approve({ sender, name }: PairingRequest, values: Values): Promise<PairedSender> {
    const paired: PairedSender = { sender, name, since: this.#clock.now() };
    await this.#state.store({ [KEYS.request(sender)]: undefined, [KEYS.paired(sender)]: paired, ...values });
    this.#requests.delete(sender);
    return paired;
  }

  /** @returns false for a sender who is not paired. It holds from the next message on. */
  async remove(sender: string): Promise<boolean> {
    if (!(await this.isPaired(sender))) return false;
    await this.#state.store({ [KEYS.paired(sender)]: undefined });
    return true;
  }

  #forgetExpired(): void {
    const now = this.#clock.now();
    for (const [sender, { expires }] of this.#requests) if (expires <= now) this.#requests.delete(sender);
  }

  #newCode(): string {
    const taken = new Set([...this.#requests.values()].map(({ code }) => code));
    for (;;) {
      const letters = this.#letters();
      const code = `${letters.slice(0, CODE_LENGTH / 2)}-${letters.slice(CODE_LENGTH / 2)}`;
      if (!taken.has(code)) return code;
    }
  }

  #letters(): string {
    for (;;) {
      // 240 = 8 × 30: no character is more frequent.
      const bytes = Buffer.from(this.#ids.hex(32), 'hex').filter((byte) => byte < 240);
      const letters = Array.from(bytes.subarray(-CODE_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]);
      if (letters.length === CODE_LENGTH) return letters.join('');
    }
  }
}

/** What a sender without a code is told, in a chat of this kind. */
export async function pairingNotice(
  pairing: Pairing,
  message: {
    readonly sender: { readonly id: string; readonly name?: string | undefined };
    readonly chat: string;
    readonly to: unknown;
  },
  isPrivate: boolean,
): Promise<string | undefined> {
  if (!isPrivate) return NOTICES.pairInPrivate;
  const code = await pairing.codeFor(message.sender, message);
  return code && NOTICES.pair(code);
}
