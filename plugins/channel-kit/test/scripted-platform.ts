import type { ChannelInbox, GrowingAnswer, Incoming, LiveAnswer, Outgoing, Platform, Receipt, SendResult } from '../src/index.js';

export interface To {
  readonly chat: string;
}

/** A platform in the test's own process: what it is sent, and what it says to that. */
export class ScriptedPlatform implements Platform<To, unknown, string> {
  readonly name = 'scripted';
  readonly tellsFull?: boolean;
  receivesAnywhere?: boolean;
  /** Every part that it took, in order. */
  readonly sent: Outgoing<To>[] = [];
  /** Every attempt. */
  readonly attempts: Outgoing<To>[] = [];
  /** What it says to the next attempts; then it takes all. */
  readonly results: (SendResult | Error | 'nothing')[] = [];
  readonly images = new Map<string, Uint8Array>();
  live?: (answer: GrowingAnswer<To>) => LiveAnswer | undefined;
  /** Characters of a part. */
  limit = 1_000;
  runs = 0;
  /** What `run` does; by default it is connected until the stop. */
  running: (inbox: ChannelInbox<To, string>, signal: AbortSignal) => Promise<void> = async (inbox, signal) => {
    inbox.connected('bot');
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  };
  #inbox: ChannelInbox<To, string> | undefined;
  #ids = 0;

  constructor(options: { readonly tellsFull?: boolean } = {}) {
    if (options.tellsFull !== undefined) this.tellsFull = options.tellsFull;
  }

  run(inbox: ChannelInbox<To, string>, signal: AbortSignal): Promise<void> {
    this.#inbox = inbox;
    this.runs += 1;
    return this.running(inbox, signal);
  }

  split(text: string): readonly string[] {
    return Array.from({ length: Math.ceil(text.length / this.limit) }, (_, n) =>
      text.slice(n * this.limit, (n + 1) * this.limit),
    );
  }

  async send(message: Outgoing<To>, signal: AbortSignal): Promise<SendResult> {
    this.attempts.push(message);
    const result = this.results.shift() ?? { kind: 'sent' };
    if (result instanceof Error) throw result;
    if (result === 'nothing') return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    if (result.kind === 'sent') this.sent.push(message);
    return result;
  }

  async loadImage(image: string): Promise<Uint8Array | undefined> {
    return this.images.get(image);
  }

  /** Texts that it took, by chat. */
  texts(chat?: string): readonly string[] {
    return this.sent.filter((one) => chat === undefined || one.chat === chat).map(({ text }) => text);
  }

  get inbox(): ChannelInbox<To, string> {
    if (!this.#inbox) throw new Error('the channel has not begun to run');
    return this.#inbox;
  }

  /** Says something in a private chat, as its one person. */
  async say(text: string, chat = 'c1', more: Partial<Incoming<To, string>> = {}): Promise<Receipt> {
    const id = `m${++this.#ids}`;
    const sender = { id: `${chat}-ann`, name: 'Ann' };
    const message = { ids: [id], id, chat, to: { chat }, sender, text, isPrivate: true, isAddressed: true, ...more };
    const [receipt] = await this.inbox.receive([message]);
    return receipt ?? 'ignored';
  }
}
