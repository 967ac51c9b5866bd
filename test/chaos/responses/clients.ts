import { once } from 'node:events';
import { WebSocket } from 'ws';

/** An event of a response, as far as the game looks into it. */
export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly stream_id?: string;
  readonly status?: number;
  readonly error?: { readonly code: string | null };
  readonly response?: ResponseBody;
  readonly [field: string]: unknown;
}

export interface ResponseBody {
  readonly id: string;
  readonly status: string;
  readonly incomplete_details: { readonly reason: string } | null;
  readonly output: readonly { readonly type: string; readonly [field: string]: unknown }[];
  readonly [field: string]: unknown;
}

/** How a request ended. */
export type Outcome =
  /** `status` as in the protocol; `reason` of one that is incomplete. */
  | { readonly is: 'ended'; readonly status: string; readonly reason?: string; readonly response?: ResponseBody }
  | { readonly is: 'refused'; readonly status: number; readonly code: string | null }
  /** The connection closed before the end. */
  | { readonly is: 'broken' };

const TERMINAL = new Set(['response.completed', 'response.failed', 'response.incomplete']);

/** One request, and what comes of it. */
export class Exchange {
  /** Of the response; undefined while it is not known, and for chat completions. */
  id: string | undefined;
  readonly events: ResponseEvent[] = [];
  readonly ended: Promise<Outcome>;
  outcome: Outcome | undefined;
  #settle: (outcome: Outcome) => void;
  #leave: () => void = () => {};

  constructor() {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.ended = promise;
    this.#settle = resolve;
  }

  /** @param leave disconnects its client. */
  onLeave(leave: () => void): void {
    this.#leave = leave;
  }

  /** The client disconnects. */
  leave(): void {
    this.#leave();
  }

  see(event: ResponseEvent): void {
    if (event.type === 'error') {
      this.end({ is: 'refused', status: event.status ?? 0, code: event.error?.code ?? null });
      return;
    }
    this.id ??= event.response?.id;
    this.events.push(event);
    if (TERMINAL.has(event.type) && event.response) this.end(endOf(event.response));
  }

  end(outcome: Outcome): void {
    this.outcome ??= outcome;
    this.#settle(this.outcome);
  }
}

function endOf(response: ResponseBody): Outcome {
  const { status, incomplete_details: details } = response;
  return { is: 'ended', status, response, ...(details && { reason: details.reason }) };
}

/** Sends `POST /v1/responses`, or reads events with `GET`. */
export function overHttp(exchange: Exchange, url: string, { method = 'POST', body, headers = {} }: HttpRequest): void {
  const abort = new AbortController();
  exchange.onLeave(() => abort.abort());
  const read = async () => {
    const response = await fetch(url, {
      method,
      signal: abort.signal,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
      const found = (await response.json()) as ResponseBody & { readonly error?: { readonly code: string | null } };
      if (response.status === 200) exchange.id = found.id;
      exchange.end(response.status === 200 ? endOf(found) : refusalOf(response.status, found.error?.code ?? null));
      return;
    }
    for await (const data of dataOf(response)) exchange.see(data as ResponseEvent);
    exchange.end({ is: 'broken' });
  };
  read().catch(() => exchange.end({ is: 'broken' }));
}

interface HttpRequest {
  readonly method?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A turn that failed is a 502, everything else was not begun or cut short. */
function refusalOf(status: number, code: string | null): Outcome {
  return status === 502 ? { is: 'ended', status: 'failed' } : { is: 'refused', status, code };
}

/** Sends `POST /v1/chat/completions`. */
export function overChat(exchange: Exchange, url: string, { body, headers = {} }: ChatCall): void {
  const abort = new AbortController();
  exchange.onLeave(() => abort.abort());
  const read = async () => {
    const response = await fetch(url, {
      method: 'POST',
      signal: abort.signal,
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    let finish: string | undefined;
    let error: { readonly code: string | null } | undefined;
    const see = (data: ChatChunk) => {
      finish = data.choices?.[0]?.finish_reason ?? finish;
      error = data.error ?? error;
    };
    if (body.stream && response.status === 200) for await (const data of dataOf(response)) see(data as ChatChunk);
    else see((await response.json()) as ChatChunk);
    if (finish !== undefined) exchange.end({ is: 'ended', status: finish === 'length' ? 'incomplete' : 'completed' });
    else if (error) exchange.end(refusalOf(response.status === 200 ? 502 : response.status, error.code));
    else exchange.end({ is: 'broken' });
  };
  read().catch(() => exchange.end({ is: 'broken' }));
}

interface ChatCall {
  readonly body: { readonly stream: boolean; readonly [field: string]: unknown };
  readonly headers?: Readonly<Record<string, string>>;
}

interface ChatChunk {
  readonly choices?: readonly { readonly finish_reason: string | null }[];
  readonly error?: { readonly code: string | null };
}

/** The values of an event stream. */
async function* dataOf(response: Response): AsyncGenerator<object> {
  let text = '';
  for await (const piece of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    text += piece;
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const data = frame.split('\n').find((line) => line.startsWith('data: '));
      if (data !== undefined && data !== 'data: [DONE]') yield JSON.parse(data.slice('data: '.length));
    }
  }
}

/** A WebSocket connection, whose lanes each run one response after the other. */
export class Socket {
  readonly #ws: WebSocket;
  readonly #lanes = new Map<string, Exchange[]>();

  private constructor(ws: WebSocket) {
    this.#ws = ws;
    ws.on('message', (data) => this.#see(JSON.parse(String(data))));
    ws.on('close', () => {
      for (const exchanges of this.#lanes.values()) for (const one of exchanges) one.end({ is: 'broken' });
    });
    ws.on('error', () => {});
  }

  static async open(url: string, path: string): Promise<Socket> {
    const ws = new WebSocket(url.replace(/^http/, 'ws') + path);
    const socket = new Socket(ws);
    await once(ws, 'open');
    return socket;
  }

  get isOpen(): boolean {
    return this.#ws.readyState === WebSocket.OPEN;
  }

  create(exchange: Exchange, lane: string, fields: object): void {
    this.#ask(exchange, lane, { type: 'response.create', ...fields, ...(lane !== '' && { stream_id: lane }) });
  }

  /** Use it on a connection of its own: the events have the lane of their response. */
  resume(exchange: Exchange, id: string, after: number): void {
    this.#ask(exchange, 'resumed', { type: 'svc:response.resume', response_id: id, starting_after: after });
  }

  cancel(id: string): void {
    this.#ws.send(JSON.stringify({ type: 'response.cancel', response_id: id }));
  }

  close(): void {
    this.#ws.terminate();
  }

  #ask(exchange: Exchange, lane: string, message: object): void {
    exchange.onLeave(() => this.#ws.terminate());
    this.#lanes.set(lane, [...(this.#lanes.get(lane) ?? []), exchange]);
    this.#ws.send(JSON.stringify(message));
  }

  #see(event: ResponseEvent): void {
    const lane = this.#lanes.has('resumed') ? 'resumed' : (event.stream_id ?? '');
    this.#lanes
      .get(lane)
      ?.find(({ outcome }) => outcome === undefined)
      ?.see(event);
  }
}
