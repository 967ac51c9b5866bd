import type { Clock, Extensions } from '@plugboard/kernel';
import {
  type AgentRuntime,
  type Failure,
  failureOf,
  type SessionRequest,
  type Target,
  TurnError,
  type TurnRequest,
} from '@plugboard/kernel/contracts';
import type { HttpError, HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { CLAIM_PROBLEMS } from './claim-problems.js';
import type { AnswerForm, Dialect, DialectTurn, ReadyTurn, ReplayForm, StreamForm } from './dialect.js';
import { requestFingerprint, sessionHash } from './fingerprints.js';
import { agentHeader, connectionHeader, REPLAYED_HEADER } from './headers.js';
import { peek } from './peek.js';
import { isFailure, Recorder, recordedAnswer } from './recorded-answer.js';
import { idempotencyKeyOf } from './request-headers.js';
import { sessionRequestOf } from './session-request.js';
import { TurnLogFields } from './turn-log-fields.js';
import { KeepAlive, TurnStream } from './turn-stream.js';

/**
 * Milliseconds from accepting a request until the head of a stream is sent, even if there is
 * nothing to stream yet.
 */
const HEAD_TIMEOUT = 5_000;

interface TurnRouteDependencies {
  /** The key of the entry. */
  readonly name: string;
  readonly runtimes: Extensions<AgentRuntime>;
  readonly clock: Clock;
}

/** A turn to run, and the form of its answer. */
interface Run {
  readonly turn: TurnRequest;
  readonly answer: AnswerForm;
  errorOf(failure: Failure): HttpError;
}

/**
 * A route whose requests run turns, in the words of a dialect.
 *
 * 1. The dialect reads the request; the route finds its session.
 * 2. For a repeated `Idempotency-Key` it answers as before.
 * 3. Otherwise it runs a turn, and sends its events as one JSON body or as a stream.
 */
export class TurnRoute implements HttpRoute {
  readonly method = 'POST';
  readonly path: string;
  readonly access = ['chat'] as const;
  readonly tokenHeader?: string;
  readonly body = 'json';
  readonly startsWork = true;
  readonly formatError: NonNullable<HttpRoute['formatError']>;

  readonly #dialect: Dialect;
  readonly #name: string;
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #clock: Clock;

  constructor(dialect: Dialect, { name, runtimes, clock }: TurnRouteDependencies) {
    this.path = dialect.path;
    if (dialect.tokenHeader !== undefined) this.tokenHeader = dialect.tokenHeader;
    this.formatError = dialect.formatError;
    this.#dialect = dialect;
    this.#name = name;
    this.#runtimes = runtimes;
    this.#clock = clock;
  }

  /**
   * @throws HttpError of the dialect, for an invalid request or a turn that failed before the head
   *   was sent.
   */
  async handle(request: HttpRequest): Promise<HttpReply> {
    try {
      return await this.#handle(request);
    } catch (error) {
      throw error instanceof TurnError ? this.#dialect.errorOf(failureOf(error, false), true) : error;
    }
  }

  async #handle(request: HttpRequest): Promise<HttpReply> {
    const runtime = this.#runtimes.one();
    const { principal } = request;
    const idempotencyKey = idempotencyKeyOf(request, this.#invalid);
    const read = this.#dialect.read(request, runtime);
    const asked = read instanceof Promise ? await read : read;
    let turn: ReadyTurn;
    if ('reply' in asked) turn = asked;
    else {
      const { session: named } = asked;
      const session = named && (await sessionRequestOf(named, asked.turn.target, request, runtime, this.#invalid));
      turn = this.#turnOf(asked, session, request);
    }
    const { sessionKey, answer } = turn;
    const session_hash = sessionKey === undefined ? undefined : sessionHash(sessionKey);
    request.note({ agent: turn.target.name, stream: answer.stream !== undefined, session_hash });
    if (idempotencyKey === undefined) {
      request.dropBody();
      return turn.reply(undefined);
    }

    const fingerprint = requestFingerprint(request.body, sessionKey, principal);
    const key = { project: principal.project, route: this.path, key: idempotencyKey };
    const claimed = await runtime.claim(key, fingerprint, request.account);
    const errorOf = (failure: Failure) => this.#errorOf(failure, answer, sessionKey);
    if (claimed.kind === 'replay') return replay(claimed.text, turn, errorOf);
    if (claimed.kind === 'failed') throw this.#dialect.errorOf(claimed.failure, false);
    if (claimed.kind !== 'new') throw this.#dialect.claimError(CLAIM_PROBLEMS[claimed.kind]);
    request.dropBody();
    return turn.reply({ claim: claimed.claim, recorder: new Recorder({ head: answer.head, fold: answer.fold() }) });
  }

  readonly #invalid = (param: string, why: string) => this.#dialect.invalid(param, why);

  #errorOf(failure: Failure, answer: ReplayForm, sessionKey: string | undefined): HttpError {
    return answer.errorOf?.(failure) ?? this.#dialect.errorOf(failure, sessionKey !== undefined);
  }

  #turnOf({ turn: asked, answer }: DialectTurn, session: SessionRequest | undefined, request: HttpRequest): ReadyTurn {
    const common = {
      ...asked,
      principal: request.principal,
      account: request.account,
      incremental: answer.stream !== undefined,
      requestId: request.requestId,
      transport: this.#name,
      signal: request.signal,
    };
    const turn: TurnRequest = session ? { ...common, session } : common;
    const errorOf = (failure: Failure) => this.#errorOf(failure, answer, session?.key);
    return {
      target: asked.target,
      sessionKey: session?.key,
      answer,
      reply: (idempotency) => this.#run(request, { turn: { ...turn, idempotency }, answer, errorOf }),
    };
  }

  #run(request: HttpRequest, run: Run): Promise<HttpReply> {
    const { stream } = run.answer;
    return stream ? this.#stream(request, run, stream) : this.#complete(request, run);
  }

  async #complete(request: HttpRequest, { turn, answer, errorOf }: Run): Promise<HttpReply> {
    const logFields = new TurnLogFields();
    const fold = answer.fold();
    for await (const batch of this.#runtimes.one().run(turn)) {
      logFields.add(batch);
      fold.add(batch);
      if (fold.end) break;
    }
    const { end } = fold;
    if (!end) throw new Error('the events of a turn ended without a terminal event');
    request.note(logFields.fields());
    if (isFailure(end)) throw errorOf(end);
    return {
      status: 200,
      headers: { ...headersOf(turn.target, answer), ...connectionHeader(end.connection) },
      body: answer.bodyOf(answer.head, end),
    };
  }

  async #stream(request: HttpRequest, { turn, answer, errorOf }: Run, stream: StreamForm): Promise<HttpReply> {
    const logFields = new TurnLogFields();
    let hasContent = false;
    const peeked = await peek(
      this.#runtimes.one().run(turn),
      (event) => {
        hasContent ||= stream.isVisible(event);
        return hasContent;
      },
      request.acceptedAt + HEAD_TIMEOUT - this.#clock.monotonic(),
      this.#clock,
    );
    if (peeked.failure) {
      for await (const batch of peeked.events) logFields.add(batch);
      request.note(logFields.fields());
      throw errorOf(peeked.failure);
    }
    const writer = stream.writer();
    writer.started = peeked.started;
    return {
      status: 200,
      headers: { ...stream.headers, ...headersOf(turn.target, answer), ...connectionHeader(peeked.connection) },
      body: new TurnStream(peeked.events, { writer, logFields, hasContent, onEnd: () => request.note(logFields.fields()) }),
      keepAlive: new KeepAlive(stream.keepAliveEvery, writer),
    };
  }
}

function headersOf(target: Target, { headers }: ReplayForm): Readonly<Record<string, string>> {
  return { ...agentHeader(target), ...headers };
}

/**
 * Answers a repeated request as the first one was answered.
 *
 * @param errorOf converts a recorded failure.
 * @throws HttpError for a turn that failed.
 */
function replay(text: string, { target, answer }: ReadyTurn, errorOf: (failure: Failure) => HttpError): HttpReply {
  const recorded = recordedAnswer(text);
  if ('failure' in recorded) throw errorOf(recorded.failure).with(REPLAYED_HEADER);
  const { head, answer: folded } = recorded;
  const sent = { ...headersOf(target, answer), ...connectionHeader(folded.connection), ...REPLAYED_HEADER };
  const { stream } = answer;
  return stream
    ? { status: 200, headers: { ...stream.headers, ...sent }, body: stream.replay(head, folded) }
    : { status: 200, headers: sent, body: answer.bodyOf(head, folded) };
}
