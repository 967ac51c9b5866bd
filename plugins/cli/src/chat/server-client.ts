import { ChatError, type ChatTarget } from './conversation.js';

/** A request was answered with an error status. */
export class StatusError extends ChatError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(`the server answered ${status}: ${message}${status === 401 ? ' Set PLUGBOARD_TOKEN to a token of this server.' : ''}`);
    this.status = status;
  }
}

/** Calls the `/v1` routes of a running server. */
export class ServerClient {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  /**
   * @param address `http://127.0.0.1:8080`, with or without `/v1`.
   * @param token the bearer token, for servers that require one.
   * @throws ChatError if the address is not a URL.
   */
  constructor(address: string, token: string | undefined) {
    this.#base = baseOf(address);
    this.#headers = { 'content-type': 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  }

  /** The agents and models that the server lists. @throws ChatError if there are none. */
  async targets(): Promise<readonly ChatTarget[]> {
    const { data } = await this.get<{ data?: readonly { id: string; owned_by?: string }[] }>('/models');
    if (!data?.length) throw new ChatError(`${this.#base} lists no agents or models`);
    return data.map(({ id, owned_by }) => ({ name: id, kind: owned_by === 'svc:model' ? 'model' : 'agent' }));
  }

  /** @throws StatusError for an error status, ChatError if the server cannot be reached. */
  async get<T>(path: string): Promise<T> {
    const response = await this.#request(path);
    const text = await response.text().catch(() => {
      throw new ChatError('the server closed the connection in the middle of its answer');
    });
    return parsed<T>(text);
  }

  /** Sends a POST request. @throws StatusError, ChatError if the server cannot be reached. */
  async post(path: string, body: object, signal: AbortSignal): Promise<void> {
    await (await this.#request(path, { method: 'POST', body: JSON.stringify(body), signal })).arrayBuffer();
  }

  /**
   * Sends a POST request and yields the payloads of its event stream until `[DONE]`.
   *
   * @throws StatusError for an error status, ChatError if the server cannot be reached or the
   * stream breaks off.
   */
  async *stream(path: string, body: object, headers: Readonly<Record<string, string>>, signal: AbortSignal) {
    const response = await this.#request(path, { method: 'POST', body: JSON.stringify(body), headers, signal });
    if (!response.body) throw new ChatError('the server sent an empty answer');
    try {
      for await (const data of payloadsOf(response.body)) {
        if (data === '[DONE]') return;
        yield data;
      }
    } catch (error) {
      if (error instanceof ChatError || signal.aborted) throw error;
    }
    throw new ChatError('the server closed the connection in the middle of its answer');
  }

  async #request(path: string, { headers, ...init }: RequestInit = {}): Promise<Response> {
    const url = this.#base + path;
    let response: Response;
    try {
      response = await fetch(url, { ...init, headers: { ...this.#headers, ...(headers as Record<string, string>) } });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new ChatError(`cannot reach ${url}: ${fetchFailure(error)}`);
    }
    if (response.ok) return response;
    throw new StatusError(response.status, messageOf(await response.text()));
  }
}

/** @throws ChatError if the text of a server is not JSON, for example a page of a proxy. */
export function parsed<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new ChatError(`the server answered with something else than JSON: ${text.slice(0, 80)}`);
  }
}

function baseOf(address: string): string {
  const whole = /^https?:\/\//.test(address) ? address : `http://${address}`;
  if (!URL.canParse(whole)) throw new ChatError(`"${address}" is not a valid URL; an example is http://127.0.0.1:8080`);
  const plain = whole.replace(/(?<!\/)\/+$/, '');
  return plain.endsWith('/v1') ? plain : `${plain}/v1`;
}

/** Yields the payloads of server-sent events. This protocol writes each as one `data:` line. */
async function* payloadsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: ')) yield line.slice(6).trimEnd();
  }
}

function messageOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: string } };
    return error?.message ?? text;
  } catch {
    return text;
  }
}

/** Why a request failed. `fetch` puts the reason into the cause. */
function fetchFailure(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message || String((cause as NodeJS.ErrnoException).code) : message;
}
