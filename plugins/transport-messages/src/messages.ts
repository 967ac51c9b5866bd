import type { Clock, Extensions, IdSource, PluginState } from '@plugboard/kernel';
import type { AgentRuntime, Failure, Target, TurnRequest } from '@plugboard/kernel/contracts';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import {
  agentHeader,
  connectionHeader,
  type ExtrasSeal,
  idempotencyKeyOf,
  ignoredParamsHeader,
  peek,
  REPLAYED_HEADER,
  requestFingerprint,
  SealedExtras,
  sessionHash,
  TurnLogFields,
  TurnStream,
} from '@plugboard/turn-routes';
import { type AnswerHead, isVisible, type Visibility } from './answer/blocks.js';
import { messageOf, readAnswer } from './answer/message.js';
import { MessageWriter, PING_INTERVAL, replayedStream, STREAM_HEADERS } from './answer/message-stream.js';
import { Recorder, recordedAnswer } from './answer/recorded-answer.js';
import type { MessagesConfig } from './config.js';
import { claimError } from './errors/claim-error.js';
import { errorBody, formatError, requestIdHeader } from './errors/format-error.js';
import { invalidField, type MessagesError } from './errors/messages-error.js';
import { turnFailureError } from './errors/turn-failure.js';
import { conversationOf, type RequestMessages } from './request/conversation.js';
import { Ignored } from './request/ignored.js';
import { parametersOf, thinkingOf } from './request/parameters.js';
import { headOf, type RequestHead } from './request/request.js';
import { sessionIdOf, sessionOf } from './request/session.js';
import { targetOf } from './request/target.js';
import { toolsOf } from './request/tools.js';

/**
 * Milliseconds from accepting a request until the head of a stream is sent, even if there is
 * nothing to stream yet.
 */
const HEAD_TIMEOUT = 5_000;

export interface MessagesDependencies {
  readonly config: MessagesConfig;
  /** The key of the entry. */
  readonly name: string;
  readonly runtimes: Extensions<AgentRuntime>;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly state: PluginState;
}

/** How a request wants its answer. */
interface AnswerForm {
  readonly head: AnswerHead;
  readonly stream: boolean;
  readonly visibility: Visibility;
  readonly headers: Readonly<Record<string, string>>;
  errorOf(failure: Failure): MessagesError;
}

/**
 * `POST /v1/messages`.
 *
 * 1. It resolves the agent, and reads the conversation, the tools and the session.
 * 2. For a repeated `Idempotency-Key` it answers as before.
 * 3. Otherwise it runs a turn and sends its events as one message or as a stream.
 */
export class Messages implements HttpRoute {
  readonly method = 'POST';
  readonly path = '/v1/messages';
  readonly access = ['chat'] as const;
  readonly tokenHeader = 'x-api-key';
  readonly body = 'json';
  readonly startsWork = true;
  readonly formatError = formatError;

  readonly #name: string;
  readonly #config: MessagesConfig;
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #clock: Clock;
  readonly #ids: IdSource;
  readonly #extras: SealedExtras;

  constructor({ name, config, runtimes, clock, ids, state }: MessagesDependencies) {
    this.#name = name;
    this.#config = config;
    this.#runtimes = runtimes;
    this.#clock = clock;
    this.#ids = ids;
    this.#extras = new SealedExtras(state);
  }

  /**
   * @throws MessagesError for an invalid request, or a turn that failed before the head was sent.
   */
  async handle(request: HttpRequest): Promise<HttpReply> {
    const runtime = this.#runtimes.one();
    const head = headOf(request.body);
    const sessionId = sessionIdOf(request, this.#config);
    const seal = sessionId === undefined ? await this.#extras.for(request.principal.project) : undefined;
    const idempotencyKey = idempotencyKeyOf(request, invalidField);
    const target = targetOf(runtime, head.model, request.principal);
    const ignored = new Ignored();
    const { fields } = head;
    const conversation = conversationOf(fields.system, fields.messages, {
      target,
      hasSession: sessionId !== undefined,
      open: seal?.open,
      ignored,
    });
    const tools = toolsOf(fields, target, ignored);
    const params = { ...parametersOf(fields, target, ignored), ...tools.params };
    const visibility = visibilityOf(request, head, { target, seal }, ignored);
    const session = sessionId === undefined ? undefined : await sessionOf(sessionId, head.user, request, target, runtime);
    request.note({ agent: target.name, stream: head.stream, session_hash: session && sessionHash(session.key) });

    const turn: TurnRequest = {
      target,
      principal: request.principal,
      isCounted: true,
      account: request.account,
      messages: conversation.messages,
      hasOwnExtras: true,
      session,
      clientTools: tools.declarations,
      params,
      incremental: head.stream,
      requestId: request.requestId,
      user: head.user,
      transport: this.#name,
      metadata: head.user === undefined ? {} : { user_id: head.user },
      signal: request.signal,
    };
    const form: AnswerForm = {
      head: { id: `msg_${this.#ids.base62(24)}`, model: head.model },
      stream: head.stream,
      visibility,
      headers: { ...requestIdHeader(request.requestId), ...agentHeader(target), ...ignoredParamsHeader(ignored.names) },
      errorOf: (failure) => turnFailureError(failure, session !== undefined, (param) => pathOf(param, conversation)),
    };
    if (idempotencyKey === undefined) {
      request.dropBody();
      return this.#run(request, turn, form);
    }

    const fingerprint = requestFingerprint(request.body, session?.key, request.principal);
    const key = { project: request.principal.project, route: this.path, key: idempotencyKey };
    const claimed = await runtime.claim(key, fingerprint);
    if (claimed.kind === 'replay') return replay(claimed.text, form);
    if (claimed.kind !== 'new') throw claimError(claimed);
    request.dropBody();
    const recorder = new Recorder(form.head, visibility, form.stream, form.errorOf);
    return this.#run(request, { ...turn, idempotency: { claim: claimed.claim, recorder } }, form);
  }

  #run(request: HttpRequest, turn: TurnRequest, form: AnswerForm): Promise<HttpReply> {
    return form.stream ? this.#stream(request, turn, form) : this.#complete(request, turn, form);
  }

  async #complete(request: HttpRequest, turn: TurnRequest, form: AnswerForm): Promise<HttpReply> {
    const logFields = new TurnLogFields();
    const answer = await readAnswer(this.#runtimes.one().run(turn), form.visibility, logFields);
    request.note(logFields.fields());
    if ('code' in answer) throw form.errorOf(answer);
    return {
      status: 200,
      headers: { ...form.headers, ...connectionHeader(answer.connection) },
      body: messageOf(form.head, answer),
    };
  }

  async #stream(request: HttpRequest, turn: TurnRequest, form: AnswerForm): Promise<HttpReply> {
    const { head, visibility, headers } = form;
    const logFields = new TurnLogFields();
    const writer = new MessageWriter(head, {
      visibility,
      logFields,
      errorOf: (failure) => {
        const error = form.errorOf(failure);
        return errorBody(error.type, error, request.requestId, failure.retryAfter);
      },
    });
    let hasContent = false;
    const peeked = await peek(
      this.#runtimes.one().run(turn),
      (event) => {
        hasContent ||= isVisible(event, visibility);
        return hasContent;
      },
      request.acceptedAt + HEAD_TIMEOUT - this.#clock.monotonic(),
      this.#clock,
    );
    if (peeked.failure) {
      for await (const batch of peeked.events) logFields.add(batch);
      request.note(logFields.fields());
      throw form.errorOf(peeked.failure);
    }
    return {
      status: 200,
      headers: { ...STREAM_HEADERS, ...headers, ...connectionHeader(peeked.connection) },
      body: new TurnStream(peeked.events, writer, hasContent, () => request.note(logFields.fields())),
      keepAlive: { every: PING_INTERVAL, text: writer.comment },
    };
  }
}

function replay(text: string, { stream, headers }: AnswerForm): HttpReply {
  const { head, answer } = recordedAnswer(text, REPLAYED_HEADER);
  const sent = { ...headers, ...connectionHeader(answer.connection), ...REPLAYED_HEADER };
  return stream
    ? { status: 200, headers: { ...STREAM_HEADERS, ...sent }, body: replayedStream(head, answer) }
    : { status: 200, headers: sent, body: messageOf(head, answer) };
}

/** Calls of the agent's own tools are shown to those who say that they know such blocks (CL-23). */
function visibilityOf(
  { headers }: HttpRequest,
  { fields }: RequestHead,
  { target, seal }: { readonly target: Target; readonly seal: ExtrasSeal | undefined },
  ignored: Ignored,
): Visibility {
  const knowsCalls = String(headers['anthropic-beta'] ?? '').includes('mcp-client');
  const thinking = thinkingOf(fields, ignored);
  return {
    thinking: thinking === 'shown',
    seal: thinking === 'off' ? undefined : seal,
    tools: knowsCalls ? target.toolVisibility : 'none',
  };
}

/**
 * The path in the request of a field that the runtime names: `messages[3].content`,
 * `tools[0].function.name`.
 */
function pathOf(param: string, { paths }: RequestMessages): string {
  const path = /^messages\[(\d+)\]/.exec(param);
  if (path) return paths[Number(path[1])] ?? 'messages';
  return param.replace(/\[(\d+)\]/g, '.$1').replace('.function.', '.');
}
