import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import {
  type Answer,
  type ChatRequest,
  completionOf,
  eventsOf,
  type HangUp,
  isPromise,
  type Pieces,
  type RawScript,
  type Script,
  type StatusScript,
} from './script.js';

/** The request that a script answers, and its progress. */
export interface ScriptedRequest {
  readonly body: ChatRequest;
  /** Resolves when the connection is closed or the response was sent. */
  readonly ended: Promise<unknown>;
  readonly state: 'open' | 'answered' | 'aborted';
  sent: number;
  /** Set when the script has ended. Closing the connection after that is not an abort. */
  isDone: boolean;
}

/** Runs a script until its end, or until the client disconnects. */
export async function playScript(script: Script, request: ScriptedRequest, response: ServerResponse): Promise<void> {
  const output = new ScriptOutput(request, response);
  try {
    if ('hangUp' in script) await hangUp(script, output);
    else if ('raw' in script) await sendRaw(script, output, response);
    else if ('status' in script) sendStatus(script, output, response);
    else if (request.body.stream === true) await sendStream(script, request.body, output, response);
    else await sendWhole(script, request.body, output, response);
  } catch (error) {
    if (!(error instanceof ClientLeft)) throw error;
  }
}

async function hangUp(script: HangUp, output: ScriptOutput): Promise<void> {
  await output.waitFor(script.before);
  output.cut();
}

async function sendStream(answer: Answer, request: ChatRequest, output: ScriptOutput, response: ServerResponse): Promise<void> {
  await output.waitFor(answer.before);
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', ...answer.headers });
  response.flushHeaders();
  const frames = framesOf(answer, request);
  if (answer.cut === undefined) {
    await output.send(frames);
    output.end();
  } else {
    await output.send(
      'afterBytes' in answer.cut ? firstBytes(frames, answer.cut.afterBytes) : firstPieces(frames, answer.cut.afterEvents),
    );
    output.cut();
  }
}

async function sendWhole(answer: Answer, request: ChatRequest, output: ScriptOutput, response: ServerResponse): Promise<void> {
  await output.waitFor(answer.before);
  const body = Buffer.from(JSON.stringify(await output.waitFor(completionOf(answer, request))));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length, ...answer.headers });
  if (answer.cut === undefined) return output.end(body);
  await output.send([body.subarray(0, 'afterBytes' in answer.cut ? answer.cut.afterBytes : body.length / 2)]);
  output.cut();
}

async function sendRaw(script: RawScript, output: ScriptOutput, response: ServerResponse): Promise<void> {
  const { contentType = 'text/event-stream' } = script;
  response.writeHead(script.status ?? 200, {
    ...(contentType === null ? {} : { 'content-type': contentType }),
    ...script.headers,
  });
  response.flushHeaders();
  await output.send(script.raw);
  if (script.ending === 'cut') output.cut();
  else output.end();
}

function sendStatus({ status, body, retryAfter, headers }: StatusScript, output: ScriptOutput, response: ServerResponse): void {
  const content = body ?? {
    error: { message: `The scripted model server answers ${status}.`, type: 'scripted_error', param: null, code: null },
  };
  response.writeHead(status, {
    'content-type': typeof content === 'string' ? 'text/plain; charset=utf-8' : 'application/json',
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    ...headers,
  });
  output.end(typeof content === 'string' ? content : JSON.stringify(content));
}

function* framesOf(answer: Answer, request: ChatRequest): Generator<string | PromiseLike<unknown>> {
  for (const event of eventsOf(answer, request)) yield isPromise(event) ? event : `data: ${JSON.stringify(event)}\n\n`;
  if (answer.done !== false) yield 'data: [DONE]\n\n';
}

function* firstPieces<T>(pieces: Pieces<T>, count: number): Generator<T | PromiseLike<unknown>> {
  for (const piece of pieces) {
    if (!isPromise(piece) && count-- === 0) return;
    yield piece;
  }
}

function* firstBytes(pieces: Pieces<string>, count: number): Generator<Uint8Array | PromiseLike<unknown>> {
  for (const piece of pieces) {
    if (isPromise(piece)) yield piece;
    else {
      const part = Buffer.from(piece).subarray(0, count);
      count -= part.length;
      if (part.length > 0) yield part;
      if (count === 0) return;
    }
  }
}

class ClientLeft extends Error {}

/** The response to a connected client. Throws `ClientLeft` once the client has disconnected. */
class ScriptOutput {
  readonly #request: ScriptedRequest;
  readonly #response: ServerResponse;
  readonly #left: Promise<never>;

  constructor(request: ScriptedRequest, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
    this.#left = request.ended.then(() => {
      throw new ClientLeft();
    });
    this.#left.catch(() => {}); // it may reject while nothing waits for it
  }

  /** Waits for a promise of the test. */
  waitFor<T>(gate: T | PromiseLike<T>): Promise<T> {
    return Promise.race([gate, this.#left]);
  }

  /** Sends pieces as the client's socket has room, in one tick if they need no wait. */
  async send(pieces: Pieces<string | Uint8Array>): Promise<void> {
    for (const piece of pieces) {
      if (isPromise(piece)) await this.waitFor(piece);
      else if (this.#response.destroyed) throw new ClientLeft();
      else {
        if (!this.#response.write(piece)) await this.waitFor(once(this.#response, 'drain'));
        this.#request.sent += 1;
      }
    }
  }

  end(body?: string | Uint8Array): void {
    this.#request.isDone = true;
    this.#response.end(body);
  }

  /** Closes the socket after what was sent, without ending the HTTP response. */
  cut(): void {
    this.#request.isDone = true;
    this.#response.socket?.destroySoon();
  }
}
