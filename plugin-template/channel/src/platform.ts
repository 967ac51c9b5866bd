import type { ChannelInbox, Outgoing, Platform, SendResult } from '@plugboard/channel-kit';

/** A message as the platform has it. */
interface ChatMessage {
  /** Grows with each message. */
  readonly id: number;
  readonly chat: string;
  readonly sender: string;
  readonly text: string;
}

/** Where a reply goes. */
interface To {
  readonly chat: string;
}

/** Characters of one message. */
const MAX_TEXT = 4_000;
/** Milliseconds. */
const POLL_TIMEOUT = 60_000;
const SEND_TIMEOUT = 10_000;

/** The platform's API: replace it with that of yours. */
export class StarterPlatform implements Platform<To> {
  readonly name = 'starter';
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #offset: () => Promise<unknown>;

  /** @param offset reads the id of the last message that was taken. */
  constructor(url: string, token: string, offset: () => Promise<unknown>) {
    this.#url = url;
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    this.#offset = offset;
  }

  /** Polls. If it throws, the kit says so, and calls it again. */
  async run(inbox: ChannelInbox<To>, signal: AbortSignal): Promise<void> {
    let offset = Number((await this.#offset()) ?? 0);
    while (!signal.aborted) {
      const messages = await this.#next(offset, signal);
      inbox.connected();
      if (messages.length === 0) continue;
      offset = messages.at(-1)?.id ?? offset;
      // Once this resolves, the messages are stored, and so is the offset. Then they are not asked
      // for again.
      await inbox.receive(messages.map(incoming), { offset });
    }
  }

  /** Splits at the limit of the platform. */
  split(text: string): readonly string[] {
    const characters = Array.from(text);
    const count = Math.ceil(characters.length / MAX_TEXT);
    return Array.from({ length: count }, (_, n) => characters.slice(n * MAX_TEXT, (n + 1) * MAX_TEXT).join(''));
  }

  /** The platform ignores an id that it knows, so a reply that is sent again is there once. */
  async send({ id, index, to, text, replyTo }: Outgoing<To>, signal: AbortSignal): Promise<SendResult> {
    const response = await fetch(`${this.#url}/replies`, {
      method: 'POST',
      headers: this.#headers,
      body: JSON.stringify({ id: `${id}/${index}`, chat: to.chat, text, replyTo }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(SEND_TIMEOUT)]),
    });
    await response.body?.cancel();
    const { ok, status, headers } = response;
    if (ok) return { kind: 'sent' };
    const reason = `the platform answered ${status}`;
    if (status === 429) return { kind: 'later', reason, after: Number(headers.get('retry-after') ?? 1) * 1_000 };
    return { kind: status >= 500 || status === 401 ? 'later' : 'never', reason };
  }

  async #next(offset: number, signal: AbortSignal): Promise<readonly ChatMessage[]> {
    const response = await fetch(`${this.#url}/messages?after=${offset}`, {
      headers: this.#headers,
      // A poll that never returns would silence the channel.
      signal: AbortSignal.any([signal, AbortSignal.timeout(POLL_TIMEOUT)]),
    });
    if (response.ok) return (await response.json()) as readonly ChatMessage[];
    await response.body?.cancel();
    throw new Error(`GET /messages was answered ${response.status}${response.status === 401 ? '; correct token' : ''}`);
  }
}

/** A message as the kit takes it. Every chat of this platform has one person. */
function incoming({ id: number, chat, sender, text }: ChatMessage) {
  const id = String(number);
  return { ids: [id], id, chat, to: { chat }, sender: { id: sender }, text, isPrivate: true, isAddressed: true };
}
