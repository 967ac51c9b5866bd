import { hash } from 'node:crypto';
import {
  type AgentRuntime,
  CLOCK,
  type Clock,
  CONFIG,
  type Extensions,
  type Failure,
  IDS,
  type IdSource,
  inject,
  injectable,
  peek,
  type SessionRequest,
  type Target,
  type TurnRequest,
} from '@plugboard/kernel';
import {
  connectionHeader,
  conversationSessionKey,
  ignoredParamsHeader,
  invalidRequest,
  parseBusyMode,
  parseIdempotencyKey,
  requestFingerprint,
  resolveAgent,
  type StreamEncoder,
  TurnLogFields,
  turnFailureError,
} from '@plugboard/openai-protocol';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { ChunkWriter, isShown, streamOf } from './answer/chunks.js';
import { type AnswerHead, completionOf, readAnswer } from './answer/completion.js';
import { Recorder } from './answer/recorded-answer.js';
import { type AnswerForm, replyToRepeat } from './answer/replay.js';
import type { ChatCompletionsConfig } from './config.js';
import { clientToolsOf } from './request/client-tools.js';
import { assertText, conversationOf } from './request/messages.js';
import { parametersOf } from './request/parameters.js';
import { type NamedSession, sessionOf, sourcesBeside } from './request/session-key.js';
import { parseRequest } from './request/validate.js';

/** Where the plugin's `register` leaves its reads for the class below. */
export const RUNTIMES = Symbol('chat-completions.runtimes');
export const ENCODERS = Symbol('chat-completions.encoders');

/** How long the head of a stream waits for something to say, counted from when the request was accepted. */
const HEAD_PATIENCE = 5_000;

/**
 * `POST /v1/chat/completions`, in the order in which things happen: the body is checked, then the session named, then the agent
 * found, then what only it can judge checked; then it is looked whether the same was asked before, and only where it was not a turn runs. Its events become one
 * JSON body, or a stream of chunks.
 */
@injectable()
export class ChatCompletions implements HttpRoute {
  readonly method = 'POST';
  readonly path = '/v1/chat/completions';
  readonly access = ['chat'] as const;
  readonly body = 'json';
  readonly startsWork = true;

  readonly #config: ChatCompletionsConfig;
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #encoders: Extensions<StreamEncoder>;
  readonly #clock: Clock;
  readonly #ids: IdSource;

  constructor(
    @inject(CONFIG) config: ChatCompletionsConfig,
    @inject(RUNTIMES) runtimes: Extensions<AgentRuntime>,
    @inject(ENCODERS) encoders: Extensions<StreamEncoder>,
    @inject(CLOCK) clock: Clock,
    @inject(IDS) ids: IdSource,
  ) {
    this.#config = config;
    this.#runtimes = runtimes;
    this.#encoders = encoders;
    this.#clock = clock;
    this.#ids = ids;
  }

  /** @throws ProtocolError for what was wrong with the request, and for a turn that failed before the head of its answer was sent. */
  async handle(request: HttpRequest): Promise<HttpReply> {
    const body = parseRequest(request.body);
    const named = sessionOf(body, request, this.#config.sessionFrom);
    const sources = sourcesBeside(named, this.#config.sessionFrom);
    const repeatable = parseIdempotencyKey(request);
    const conversation = conversationOf(body.messages);
    const encoder = body.stream ? this.#encoder() : undefined;

    const target = resolveAgent(this.#runtimes.one(), body.model, 'model', request.principal);
    const clientTools = clientToolsOf(body, target);
    const { params, ignored } = parametersOf(body, target, clientTools.length > 0, sources);
    if (!target.input.includes('image')) {
      // Of a session's request, only what follows the last answer is new.
      const from = named ? conversation.findLastIndex(({ role }) => role === 'assistant') : 0;
      assertText(conversation, target.connection, from);
    }
    const session = named && (await this.#sessionOf(named, target, request));
    request.note({ agent: target.name, stream: encoder !== undefined, session_hash: session && hashed(session.key) });

    const turn: TurnRequest = {
      target,
      principal: request.principal,
      messages: conversation,
      session,
      clientTools,
      params,
      incremental: encoder !== undefined,
      requestId: request.requestId,
      metadata: body.metadata ?? {},
      signal: request.signal,
    };
    const head = this.#head(body.model, target);
    const form = { encoder, includeUsage: body.stream_options?.include_usage === true, headers: ignoredParamsHeader(ignored) };
    if (repeatable === undefined) return this.#answer(request, turn, head, form);

    const fingerprint = requestFingerprint(request.body, session?.key);
    const key = { project: request.principal.project, route: this.path, key: repeatable };
    const claimed = await this.#runtimes.one().claim(key, fingerprint);
    if (claimed.kind !== 'new') return replyToRepeat(claimed, form);
    const recorder = new Recorder(head, encoder !== undefined, (failure) => turnFailureError(failure, session !== undefined));
    return this.#answer(request, { ...turn, idempotency: { claim: claimed.claim, recorder } }, head, form);
  }

  #answer(request: HttpRequest, turn: TurnRequest, head: AnswerHead, { encoder, ...form }: AnswerForm): Promise<HttpReply> {
    return encoder ? this.#streamed(request, turn, head, { encoder, ...form }) : this.#whole(request, turn, head, form.headers);
  }

  /** A client that gives up on a request and repeats it sends the same bytes: it joins the turn that it began. */
  async #sessionOf(named: NamedSession, target: Target, request: HttpRequest): Promise<SessionRequest> {
    const busy = parseBusyMode(request);
    const isKnown = 'conversation' in named;
    const key = isKnown
      ? await conversationSessionKey(named, target, request.principal, this.#runtimes.one().conversations)
      : named.key;
    const fingerprint = hash('sha256', JSON.stringify([request.principal.token, key, request.rawBody]), 'base64');
    return { key, user: isKnown ? undefined : named.user, fingerprint, busy };
  }

  #encoder(): StreamEncoder {
    const encoder = this.#encoders.get('sse');
    if (encoder) return encoder;
    throw invalidRequest(
      'This server does not stream: the plugin @plugboard/transport-sse is missing. Add `sse: {}` under `transports` in its configuration, or leave `stream` out.',
      { param: 'stream', code: 'unsupported_value' },
    );
  }

  async #whole(
    request: HttpRequest,
    turn: TurnRequest,
    head: AnswerHead,
    headers: Readonly<Record<string, string>>,
  ): Promise<HttpReply> {
    const facts = new TurnLogFields();
    const answer = await readAnswer(this.#runtimes.one().run(turn), facts);
    request.note(facts.fields());
    if ('code' in answer) throw turnFailureError(answer, turn.session !== undefined);
    return {
      status: 200,
      headers: { ...headers, ...connectionHeader(answer.connection) },
      body: completionOf(head, answer),
    };
  }

  async #streamed(
    request: HttpRequest,
    turn: TurnRequest,
    head: AnswerHead,
    { encoder, includeUsage, headers }: AnswerForm & { readonly encoder: StreamEncoder },
  ): Promise<HttpReply> {
    const facts = new TurnLogFields();
    const errorOf = (failure: Failure) => turnFailureError(failure, turn.session !== undefined);
    const writer = new ChunkWriter(head, {
      encoder,
      facts,
      includeUsage,
      errorOf: (failure) => errorOf(failure).body,
    });

    let speaks = false;
    const peeked = await peek(
      this.#runtimes.one().run(turn),
      (event) => {
        writer.begun = true;
        speaks ||= isShown(event);
        return speaks;
      },
      request.acceptedAt + HEAD_PATIENCE - this.#clock.monotonic(),
      this.#clock,
    );
    if (peeked.failure) {
      for await (const batch of peeked.events) writer.write(batch); // to its end, for what the log is told
      request.note(facts.fields());
      throw errorOf(peeked.failure);
    }
    return {
      status: 200,
      headers: { ...encoder.headers, ...headers, ...connectionHeader(peeked.connection) },
      body: streamOf(peeked.events, writer, speaks, () => request.note(facts.fields())),
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

/** A session's key as the log shows it: enough to follow a conversation, nothing of who talks. */
function hashed(key: string): string {
  return hash('sha256', key).slice(0, 16);
}
