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
} from './model-script.js';

/** The request that a script is played to, and how far it has come. */
export interface Audience {
  readonly body: ChatRequest;
  /** Resolves when the connection is closed, or the response has been sent. */
  readonly ended: Promise<unknown>;
  readonly state: 'open' | 'answered' | 'aborted';
  sent: number;
  /** Set when the script is at its end: what closes the connection from then on is no abort. */
  isDone: boolean;
}

/** Does with a response what a script says, for as long as the caller is there. */
export async function perform(script: Script, audience: Audience, response: ServerResponse): Promise<void> {
  const stage = new Stage(audience, response);
  try {
    if ('hangUp' in script) await hangUp(script, stage);
    else if ('raw' in script) await performRaw(script, stage, response);
    else if ('status' in script) performStatus(script, stage, response);
    else if (audience.body.stream === true) await performStream(script, audience.body, stage, response);
    else await performWhole(script, audience.body, stage, response);
  } catch (error) {
    if (!(error instanceof CallerLeft)) throw error;
  }
}

async function hangUp(script: HangUp, stage: Stage): Promise<void> {
  await stage.waitFor(script.before);
  stage.cut();
}

async function performStream(answer: Answer, request: ChatRequest, stage: Stage, response: ServerResponse): Promise<void> {
  await stage.waitFor(answer.before);
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', ...answer.headers });
  response.flushHeaders();
  const frames = framesOf(answer, request);
  if (answer.cut === undefined) {
    await stage.send(frames);
    stage.end();
  } else {
    await stage.send(
      'afterBytes' in answer.cut ? firstBytes(frames, answer.cut.afterBytes) : firstPieces(frames, answer.cut.afterEvents),
    );
    stage.cut();
  }
}

async function performWhole(answer: Answer, request: ChatRequest, stage: Stage, response: ServerResponse): Promise<void> {
  await stage.waitFor(answer.before);
  const body = Buffer.from(JSON.stringify(await stage.waitFor(completionOf(answer, request))));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length, ...answer.headers });
  if (answer.cut === undefined) return stage.end(body);
  await stage.send([body.subarray(0, 'afterBytes' in answer.cut ? answer.cut.afterBytes : body.length / 2)]);
  stage.cut();
}

async function performRaw(script: RawScript, stage: Stage, response: ServerResponse): Promise<void> {
  const { contentType = 'text/event-stream' } = script;
  response.writeHead(script.status ?? 200, {
    ...(contentType === null ? {} : { 'content-type': contentType }),
    ...script.headers,
  });
  response.flushHeaders();
  await stage.send(script.raw);
  if (script.ending === 'cut') stage.cut();
  else stage.end();
}

function performStatus({ status, body, retryAfter, headers }: StatusScript, stage: Stage, response: ServerResponse): void {
  const said = body ?? {
    error: { message: `The scripted model server answers ${status}.`, type: 'scripted_error', param: null, code: null },
  };
  response.writeHead(status, {
    'content-type': typeof said === 'string' ? 'text/plain; charset=utf-8' : 'application/json',
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    ...headers,
  });
  stage.end(typeof said === 'string' ? said : JSON.stringify(said));
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

class CallerLeft extends Error {}

/** The response, for as long as somebody is there to read it: whatever waits here throws `CallerLeft` when nobody is. */
class Stage {
  readonly #audience: Audience;
  readonly #response: ServerResponse;
  readonly #left: Promise<never>;

  constructor(audience: Audience, response: ServerResponse) {
    this.#audience = audience;
    this.#response = response;
    this.#left = audience.ended.then(() => {
      throw new CallerLeft();
    });
    this.#left.catch(() => {}); // told to whoever waits; nobody need be
  }

  /** Waits for what the test holds. */
  waitFor<T>(gate: T | PromiseLike<T>): Promise<T> {
    return Promise.race([gate, this.#left]);
  }

  /** Sends one piece after the other, as far as the caller's socket has room. What needs no wait goes out in one tick. */
  async send(pieces: Pieces<string | Uint8Array>): Promise<void> {
    for (const piece of pieces) {
      if (isPromise(piece)) await this.waitFor(piece);
      else if (this.#response.destroyed) throw new CallerLeft();
      else {
        if (!this.#response.write(piece)) await this.waitFor(once(this.#response, 'drain'));
        this.#audience.sent += 1;
      }
    }
  }

  end(body?: string | Uint8Array): void {
    this.#audience.isDone = true;
    this.#response.end(body);
  }

  /** Closes the socket behind what was sent, without the end that HTTP asks for. */
  cut(): void {
    this.#audience.isDone = true;
    this.#response.socket?.destroySoon();
  }
}
