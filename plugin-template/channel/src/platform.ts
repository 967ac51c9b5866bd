/** A message from the platform. */
export interface Incoming {
  /** Grows with each message. */
  readonly id: number;
  readonly chat: string;
  readonly sender: string;
  readonly text: string;
}

/** An answer to a message. */
export interface Reply {
  /** The id of the message. The platform ignores a second reply to it. */
  readonly id: number;
  readonly chat: string;
  readonly text: string;
}

/** The platform's API: replace it with that of yours. */
export class Platform {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  }

  /**
   * Waits for the first message after `offset`. @returns undefined if there is none for a while.
   */
  async next(offset: number, signal: AbortSignal): Promise<Incoming | undefined> {
    const response = await fetch(`${this.#url}/messages?after=${offset}`, {
      headers: this.#headers,
      // A poll that never returns would silence the channel.
      signal: AbortSignal.any([signal, AbortSignal.timeout(60_000)]),
    });
    if (!response.ok) throw await failure('GET /messages', response);
    const [first] = (await response.json()) as readonly Incoming[];
    return first;
  }

  /**
   * @returns whether the platform has taken the reply; false if it never will.
   * @throws Error if a later attempt may succeed.
   */
  async send(reply: Reply): Promise<boolean> {
    const response = await fetch(`${this.#url}/replies`, {
      method: 'POST',
      headers: this.#headers,
      body: JSON.stringify(reply),
      signal: AbortSignal.timeout(10_000),
    });
    const { ok, status } = response;
    const isFinal = status >= 400 && status < 500 && ![401, 408, 429].includes(status);
    if (!ok && !isFinal) throw await failure('POST /replies', response);
    await response.body?.cancel();
    return ok;
  }
}

async function failure(request: string, response: Response): Promise<Error> {
  await response.body?.cancel();
  return new Error(`the platform answered ${request} with status ${response.status}`);
}
