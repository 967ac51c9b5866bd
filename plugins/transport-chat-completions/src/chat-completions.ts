import type { Clock, Extensions, IdSource } from '@plugboard/kernel';
import {
  type AgentRuntime,
  type Failure,
  isBlankKey,
  type SessionRequest,
  type Target,
  type TurnRequest,
} from '@plugboard/kernel/contracts';
import {
  agentHeader,
  connectionHeader,
  conversationSessionKey,
  formatError,
  ignoredParamsHeader,
  joinFingerprint,
  messageWithWait,
  parseBusyMode,
  parseIdempotencyKey,
  peek,
  requestFingerprint,
  resolveAgent,
  sessionHash,
  TurnLogFields,
  TurnStream,
  turnFailureError,
} from '@plugboard/openai-protocol';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { ChunkWriter, isVisible } from './answer/chunks.js';
import { type AnswerHead, completionOf, readAnswer } from './answer/completion.js';
import { Recorder } from './answer/recorded-answer.js';
import { type AnswerForm, replayAnswer } from './answer/replay.js';
import { requireStreamEncoder, type StreamEncoder } from './answer/stream-encoder.js';
import type { ChatCompletionsConfig } from './config.js';
import { clientToolsOf } from './request/client-tools.js';
import { assertText, conversationOf } from './request/messages.js';
import { effectiveSources, type NamedSession, parseSession } from './request/named-session.js';
import { parametersOf } from './request/parameters.js';
import { parseRequest } from './request/validate.js';

/**
 * Milliseconds from accepting a request until the head of a stream is sent, even if there is
 * nothing to stream yet.
 */
const HEAD_TIMEOUT = 5_000;

interface ChatCompletionsDependencies {
  /** The key of the entry. */
  readonly name: string;
  readonly config: ChatCompletionsConfig;
  readonly runtimes: Extensions<AgentRuntime>;
  readonly encoders: Extensions<StreamEncoder>;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/**
 * `POST /v1/chat/completions`.
 *
 * 1. It validates the body, finds the session, resolves the agent and checks what depends on it.
 * 2. For a repeated `Idempotency-Key` it answers as before.
 * 3. Otherwise it runs a turn and sends its events as one JSON body or as a stream of chunks.
 */
export class ChatCompletions implements HttpRoute {
  readonly method = 'POST';
  readonly path = '/v1/chat/completions';
  readonly access = ['chat'] as const;
  readonly body = 'json';
  readonly startsWork = true;
  readonly formatError = formatError;

  readonly #name: string;
  readonly #config: ChatCompletionsConfig;
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #encoders: Extensions<StreamEncoder>;
  readonly #clock: Clock;
  readonly #ids: IdSource;

  constructor({ name, config, runtimes, encoders, clock, ids }: ChatCompletionsDependencies) {
    this.#name = name;
    this.#config = config;
    this.#runtimes = runtimes;
    this.#encoders = encoders;
    this.#clock = clock;
    this.#ids = ids;
  }

  /**
   * @throws ProtocolError for an invalid request, or a turn that failed before the head was sent.
   */
  async handle(request: HttpRequest): Promise<HttpReply> {
    const body = parseRequest(request.body);
    const named = parseSession(body, request, this.#config.sessionFrom);
    const sources = effectiveSources(named, this.#config.sessionFrom);
    const idempotencyKey = parseIdempotencyKey(request);
    const conversation = conversationOf(body.messages);
    const encoder = body.stream ? requireStreamEncoder(this.#encoders) : undefined;

    const target = resolveAgent(this.#runtimes.one(), body.model, 'model', request.principal);
    const clientTools = clientToolsOf(body, target);
    const { params, ignored } = parametersOf(body, target, clientTools.length > 0, sources);
    if (!target.input.includes('image')) {
      // Of a session's request, only what follows the last answer is new.
      const from = named ? conversation.findLastIndex(({ role }) => role === 'assistant') : 0;
      assertText(conversation, target.connection, from);
    }
    const session = named && (await this.#sessionOf(named, target, request));
    request.note({ agent: target.name, stream: encoder !== undefined, session_hash: session && sessionHash(session.key) });

    const turn: TurnRequest = {
      target,
      principal: request.principal,
      isCounted: true,
      account: request.account,
      messages: conversation,
      session,
      clientTools,
      params,
      incremental: encoder !== undefined,
      requestId: request.requestId,
      user: isBlankKey(body.user ?? '') ? undefined : body.user,
      transport: this.#name,
      metadata: body.metadata ?? {},
      signal: request.signal,
    };
    const head = this.#head(body.model, target);
    const form = {
      encoder,
      includeUsage: body.stream_options?.include_usage === true,
      headers: { ...agentHeader(target), ...ignoredParamsHeader(ignored) },
    };
    if (idempotencyKey === undefined) {
      request.dropBody();
      return this.#run(request, turn, head, form);
    }

    const fingerprint = requestFingerprint(request.body, session?.key, request.principal);
    const key = { project: request.principal.project, route: this.path, key: idempotencyKey };
    const claimed = await this.#runtimes.one().claim(key, fingerprint);
    if (claimed.kind !== 'new') return replayAnswer(claimed, form);
    request.dropBody();
    const recorder = new Recorder(head, encoder !== undefined, (failure) => turnFailureError(failure, session !== undefined));
    return this.#run(request, { ...turn, idempotency: { claim: claimed.claim, recorder } }, head, form);
  }

  #run(request: HttpRequest, turn: TurnRequest, head: AnswerHead, { encoder, ...form }: AnswerForm): Promise<HttpReply> {
    return encoder ? this.#stream(request, turn, head, { encoder, ...form }) : this.#complete(request, turn, head, form.headers);
  }

  /** The fingerprint lets a client that repeats a request join the turn it started. */
  async #sessionOf(named: NamedSession, target: Target, request: HttpRequest): Promise<SessionRequest> {
    const busy = parseBusyMode(request);
    const isKnown = 'conversation' in named;
    const key = isKnown
      ? await conversationSessionKey(named, target, request.principal, this.#runtimes.one().conversations)
      : named.key;
    return { key, user: isKnown ? undefined : named.user, fingerprint: joinFingerprint(request), busy };
  }

  async #complete(
    request: HttpRequest,
    turn: TurnRequest,
    head: AnswerHead,
    headers: Readonly<Record<string, string>>,
  ): Promise<HttpReply> {
    const logFields = new TurnLogFields();
    const answer = await readAnswer(this.#runtimes.one().run(turn), logFields);
    request.note(logFields.fields());
    if ('code' in answer) throw turnFailureError(answer, turn.session !== undefined);
    return {
      status: 200,
      headers: { ...headers, ...connectionHeader(answer.connection) },
      body: completionOf(head, answer),
    };
  }

  async #stream(
    request: HttpRequest,
    turn: TurnRequest,
    head: AnswerHead,
    { encoder, includeUsage, headers }: AnswerForm & { readonly encoder: StreamEncoder },
  ): Promise<HttpReply> {
    const logFields = new TurnLogFields();
    const errorOf = (failure: Failure) => turnFailureError(failure, turn.session !== undefined);
    const writer = new ChunkWriter(head, {
      encoder,
      logFields,
      includeUsage,
      errorOf: (failure) => errorOf({ ...failure, message: messageWithWait(failure) }).body,
    });

    let hasContent = false;
    const peeked = await peek(
      this.#runtimes.one().run(turn),
      (event) => {
        writer.started = true;
        hasContent ||= isVisible(event);
        return hasContent;
      },
      request.acceptedAt + HEAD_TIMEOUT - this.#clock.monotonic(),
      this.#clock,
    );
    if (peeked.failure) {
      for await (const batch of peeked.events) writer.write(batch); // reads to the end, to collect the log fields
      request.note(logFields.fields());
      throw errorOf(peeked.failure);
    }
    return {
      status: 200,
      headers: { ...encoder.headers, ...headers, ...connectionHeader(peeked.connection) },
      body: new TurnStream(peeked.events, writer, hasContent, () => request.note(logFields.fields())),
      keepAlive: {
        every: encoder.keepAliveEvery,
        get text() {
          return writer.comment;
        },
      },
    };
  }

  #head(model: string, target: Target): AnswerHead {
    return {
      id: `chatcmpl-${this.#ids.base62(29)}`,
      created: Math.floor(this.#clock.now() / 1000),
      model,
      fingerprint: `fp_${target.fingerprint}`,
    };
  }
}
