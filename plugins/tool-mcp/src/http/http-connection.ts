import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError, type Tool } from '@modelcontextprotocol/client';
import type { ToolCall } from '@plugboard/kernel';
import type { Account, Timer } from '@plugboard/kernel/contracts';
import {
  answeredStatus,
  answeredTask,
  callBroken,
  callRefused,
  messageOf,
  notReached,
  otherProtocol,
  statusAtStart,
} from '../errors/errors.js';
import { ANY_RESULT } from '../protocol/any-result.js';
import { NO_LIMIT, serverOf } from '../protocol/client-info.js';
import type { ConnectionEvents, McpConnection } from '../protocol/mcp-connection.js';
import { timeLimit, unlessAborted, withOwnSignal } from '../protocol/own-signal.js';
import { progressOf } from '../protocol/progress.js';
import { readList, type ToolList } from '../protocol/tool-list.js';
import { type Fetch, fetchFor } from './fetch.js';
import { annotationFault } from './header-annotations.js';
import { HttpFailure } from './http-failure.js';
import { HttpSession, type HttpSessionOptions } from './http-session.js';

/** Milliseconds for opening a new session in place of one that the server forgot. */
const RENEW_LIMIT = 10_000;
/** Milliseconds that a list of tools is used, also with a shorter `ttlMs` (SEP-2549). */
const LIST_AGE = { min: 60_000, max: 24 * 60 * 60 * 1000 };
/** Milliseconds until the revision is asked for again because of an error. */
const ASK_AGAIN = 60_000;
/** Errors of a server that speaks another revision: of HTTP, and of JSON-RPC. */
const OTHER_REVISION: ReadonlySet<number> = new Set([400, 404, 405, -32_000, -32_022, -32_600, -32_601]);
/** The headers of a call do not match its arguments (SEP-2243). */
const HEADER_MISMATCH = -32020;
/** Characters of a server's answer in an error. */
const MAX_TEXT = 500;

export interface HttpConnectionOptions extends Omit<HttpSessionOptions, 'fetch'> {
  /** The name of the entry, for messages. */
  readonly entry: string;
  /** Creates the account of the memory that one response takes. */
  readonly newAccount: () => Account;
  readonly redact: (text: string) => string;
  /** Adds what identifies Plugboard to the server to each request. */
  readonly authorize?: ((fetch: Fetch, stopping: AbortSignal) => Fetch) | undefined;
}

/**
 * A server that is reached over HTTP, in either era of MCP.
 *
 * 1. A session that the server forgot (404) is replaced by one new session for all calls.
 * 2. The connection ends when the server cannot be reached. Calls that are under way go on: the
 *    server may still answer them.
 */
export class HttpConnection implements McpConnection {
  readonly #options: HttpConnectionOptions;
  readonly #events: ConnectionEvents;
  readonly #peer: string;
  readonly #closing = new AbortController();
  readonly #fetch: HttpSessionOptions['fetch'];
  #session: HttpSession;
  #renewal: Promise<HttpSession> | undefined;
  /** The schemas of the tools as listed last: they name headers. */
  #schemas: ReadonlyMap<string, Tool['inputSchema']> = new Map();
  /** When the list is too old. */
  #stale: Timer | undefined;
  /** When an error makes it ask for the revision again, on the monotonic clock. */
  #nextAsk = Number.NEGATIVE_INFINITY;
  #ending: string | undefined;

  constructor(options: HttpConnectionOptions, events: ConnectionEvents) {
    const { url, clock, newAccount, stopping, authorize } = options;
    this.#options = options;
    this.#events = events;
    this.#peer = `${url.origin}${url.pathname}`;
    const fetch = fetchFor({ url, clock, newAccount, onAway: (failure) => this.#end(failure.message) });
    this.#fetch = authorize?.(fetch, stopping) ?? fetch;
    this.#session = this.#newSession();
  }

  open(signal: AbortSignal): Promise<void> {
    return this.#session.open(signal);
  }

  get server(): string {
    return serverOf(this.#session.client);
  }

  async list(signal: AbortSignal): Promise<ToolList> {
    const list = await this.#read(signal).catch((error) => {
      if (!(error instanceof ProtocolError)) throw error;
      return this.#read(signal); // a list that changed meanwhile has other pages
    });
    const tools = list.listed.filter((tool): tool is Tool => typeof tool === 'object' && tool !== null);
    this.#schemas = new Map(tools.map(({ name, inputSchema }) => [name, inputSchema]));
    return this.#session.isOld ? list : { ...list, faultOf: annotationFault };
  }

  async call(
    name: string,
    input: Readonly<Record<string, unknown>>,
    meta: Readonly<Record<string, unknown>>,
    call: ToolCall,
  ): Promise<Readonly<Record<string, unknown>>> {
    const params = { name, arguments: { ...input }, _meta: { ...meta } };
    const onprogress = (progress: Parameters<typeof progressOf>[0]) => call.progress(...progressOf(progress));
    const send = () =>
      this.#inSession(call.signal, ({ client, isOld }, signal) => {
        const options = { signal, timeout: NO_LIMIT, onprogress };
        if (isOld) return client.request({ method: 'tools/call', params }, ANY_RESULT, options);
        const inputSchema = this.#schemas.get(name) ?? { type: 'object' };
        return client.callTool(params, { ...options, toolDefinition: { name, inputSchema } });
      });
    try {
      const result = await send().catch(async (error) => {
        if (!(error instanceof ProtocolError) || error.code !== HEADER_MISMATCH) throw error;
        await this.list(call.signal);
        this.#events.toolsChanged();
        return send();
      });
      if ('task' in result && !('content' in result)) throw answeredTask(this.#options.entry);
      return result;
    } catch (error) {
      const code = error instanceof SdkHttpError ? error.status : error instanceof ProtocolError ? error.code : 0;
      if (OTHER_REVISION.has(code)) this.#askForRevision();
      throw this.#explained(error);
    }
  }

  ending(): string | undefined {
    return this.#ending;
  }

  failure(error: unknown, isLate: boolean): string {
    const status =
      error instanceof SdkHttpError ? statusAtStart(this.#peer, error.status, this.redact(textOf(error))) : undefined;
    if (isLate) return `${this.#peer} did not answer in time: check \`url\`, and that it is an MCP server`;
    return this.#ending ?? failureIn(error)?.message ?? status ?? otherProtocol(this.#peer, error);
  }

  lastLines(): readonly string[] {
    return [];
  }

  redact(text: string): string {
    return this.#options.redact(text);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the connection was closed'));
    this.#stale?.cancel();
    await this.#session.close();
  }

  async #read(signal: AbortSignal): Promise<ToolList> {
    let age = Number.POSITIVE_INFINITY;
    const list = await readList(async (cursor) => {
      const page = await this.#inSession(signal, async ({ client }, signal) => {
        if (!client.getServerCapabilities()?.tools) return { tools: [] };
        const params = cursor === undefined ? {} : { cursor };
        return client.request({ method: 'tools/list', params }, ANY_RESULT, { signal, timeout: NO_LIMIT });
      });
      if ('ttlMs' in page && typeof page.ttlMs === 'number') age = Math.min(age, page.ttlMs);
      return page;
    });
    this.#stale?.cancel();
    this.#stale = undefined;
    if (Number.isFinite(age) && !this.#closing.signal.aborted) {
      const wait = Math.min(Math.max(age, LIST_AGE.min), LIST_AGE.max);
      this.#stale = this.#options.clock.after(wait, () => this.#events.toolsChanged());
    }
    return list;
  }

  /** Sends a request, and once more in a new session if the server forgot the one in use. */
  async #inSession<T>(signal: AbortSignal, work: (session: HttpSession, signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#ending !== undefined) throw new HttpFailure('away', this.#ending);
    const session = this.#session;
    const send = (session: HttpSession) => withOwnSignal(signal, (signal) => session.run(() => work(session, signal)));
    try {
      return await send(session);
    } catch (error) {
      if (!(error instanceof SdkHttpError) || error.status !== 404 || !session.hasId || signal.aborted) throw error;
      return send(await withOwnSignal(signal, (signal) => unlessAborted(this.#renew(session), signal)));
    }
  }

  /** The session in place of a lost one: one for all that lost it. */
  #renew(lost: HttpSession): Promise<HttpSession> {
    if (this.#session !== lost) return Promise.resolve(this.#session);
    this.#renewal ??= this.#openAnother(lost).finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  async #openAnother(lost: HttpSession): Promise<HttpSession> {
    const { clock } = this.#options;
    const limit = timeLimit(clock, RENEW_LIMIT, 'a new session was not opened in time', this.#closing.signal);
    const session = this.#newSession();
    try {
      await session.open(limit.signal);
    } catch (error) {
      void session.close();
      throw error;
    } finally {
      limit.cancel();
    }
    this.#session = session;
    lost.retire();
    this.#events.toolsChanged();
    return session;
  }

  /** The server may have been replaced by one of another revision: later calls know. */
  #askForRevision(): void {
    const { clock, revision } = this.#options;
    if (clock.monotonic() < this.#nextAsk) return;
    this.#nextAsk = clock.monotonic() + ASK_AGAIN;
    revision.forget();
    this.#renew(this.#session).catch((error) => this.#events.violation(error));
  }

  #newSession(): HttpSession {
    const session: HttpSession = new HttpSession(
      { ...this.#options, fetch: this.#fetch },
      {
        toolsChanged: () => this.#events.toolsChanged(),
        violation: (error) => this.#events.violation(error),
        streamLost: () => {
          if (this.#session === session) this.#renew(session).catch((error) => this.#events.violation(error));
        },
      },
    );
    return session;
  }

  /** The server is away. What is under way may still end. */
  #end(reason: string): void {
    if (this.#ending !== undefined || this.#closing.signal.aborted) return;
    this.#ending = reason;
    this.#stale?.cancel();
    this.#session.retire();
    this.#events.ended();
  }

  #explained(error: unknown): unknown {
    const { entry } = this.#options;
    const failure = failureIn(error);
    if (failure?.kind === 'away') return notReached(entry, error);
    if (failure?.kind === 'broken') return callBroken(entry, error);
    if (failure) return callRefused(entry, failure.message, error);
    if (error instanceof SdkHttpError) {
      return answeredStatus(entry, error.status, this.redact(textOf(error)), error);
    }
    if (error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed) return callBroken(entry, error);
    return error;
  }
}

/** The failure of HTTP that the SDK put into its error. */
function failureIn(error: unknown): HttpFailure | undefined {
  if (error instanceof HttpFailure) return error;
  if (error instanceof ProtocolError && error.data instanceof HttpFailure) return error.data;
  return error instanceof Error && error.cause instanceof HttpFailure ? error.cause : undefined;
}

/** What a server says beside a status; for a redirect, where it leads. */
function textOf(error: SdkHttpError): string {
  const { status, data } = error;
  const text = status >= 300 && status < 400 ? messageOf(error) : data.text;
  return typeof text === 'string' ? text.slice(0, MAX_TEXT).trim() : '';
}
