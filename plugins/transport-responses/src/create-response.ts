import type { Extensions } from '@plugboard/kernel';
import { type AnswerRecorder, failureOf, TurnError, type TurnIdempotency } from '@plugboard/kernel/contracts';
import {
  type LiveResponse,
  type PlannedResponse,
  parseRequest,
  type ResponseRequest,
  type ResponseService,
} from '@plugboard/open-responses';
import {
  claimError,
  connectionHeader,
  ignoredParamsHeader,
  joinFingerprint,
  parseBusyMode,
  parseIdempotencyKey,
  requestFingerprint,
  turnFailureError,
} from '@plugboard/openai-protocol';
import { requireStreamEncoder, type StreamEncoder } from '@plugboard/transport-chat-completions';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { ResponseRecorder, replyTo } from './recorded-response.js';
import { JSON_HEADERS, streamReply } from './reply.js';

/**
 * `POST /v1/responses`, in the order in which things happen: the body is checked, the agent and
 * what the response continues are found, a repeated request is recognised, and then the turn runs.
 * Its events become one response object, or a stream.
 */
export class CreateResponse implements HttpRoute {
  readonly method = 'POST';
  readonly path = '/v1/responses';
  readonly access = ['chat'] as const;
  readonly body = 'json';
  readonly startsWork = true;
  readonly #service: () => ResponseService;
  readonly #encoders: Extensions<StreamEncoder>;

  constructor(service: () => ResponseService, encoders: Extensions<StreamEncoder>) {
    this.#service = service;
    this.#encoders = encoders;
  }

  /**
   * @throws ProtocolError for what is wrong with the request, and for a turn that failed before the
   * head of its answer was sent.
   */
  async handle(request: HttpRequest): Promise<HttpReply> {
    try {
      return await this.#handle(request);
    } catch (error) {
      throw error instanceof TurnError ? turnFailureError(failureOf(error, false), true) : error;
    }
  }

  async #handle(request: HttpRequest): Promise<HttpReply> {
    const body = parseRequest(request.body);
    const repeatable = parseIdempotencyKey(request);
    const encoder = body.stream === true ? requireStreamEncoder(this.#encoders) : undefined;
    const planned = await this.#plan(request, body, encoder !== undefined);
    request.note({ agent: planned.target.name, stream: encoder !== undefined, response_id: planned.id });
    if (repeatable === undefined) return this.#answer(request, planned, await planned.create(), encoder);

    const key = { project: request.principal.project, route: this.path, key: repeatable };
    const claimed = await this.#service().runtime.claim(
      key,
      requestFingerprint(request.body, planned.sessionKey, request.principal),
    );
    if (claimed.kind === 'replay') return replyTo(claimed.text, encoder, ignoredParamsHeader(planned.ignored));
    if (claimed.kind !== 'new') throw claimError(claimed);
    const recorder: AnswerRecorder = new ResponseRecorder(planned);
    const idempotency: TurnIdempotency = { claim: claimed.claim, recorder };
    return this.#answer(request, planned, await planned.create(idempotency), encoder);
  }

  #plan(request: HttpRequest, body: ResponseRequest, streams: boolean): Promise<PlannedResponse> {
    const { principal, requestId } = request;
    return this.#service().plan(body, {
      principal,
      requestId,
      busy: parseBusyMode(request),
      fingerprint: joinFingerprint(request),
      incremental: streams,
      resumable: streams,
      extensions: false,
      memory: request.leaseReply(),
    });
  }

  async #answer(
    request: HttpRequest,
    planned: PlannedResponse,
    live: LiveResponse,
    encoder: StreamEncoder | undefined,
  ): Promise<HttpReply> {
    const headers = ignoredParamsHeader(planned.ignored);
    const note = () => request.note(live.facts.fields());
    const stop = () => {
      if (request.signal.reason instanceof TurnError) live.cancel(request.signal.reason);
      else if (!encoder) live.abandon();
    };
    if (request.signal.aborted) stop();
    else request.signal.addEventListener('abort', stop, { once: true });
    const refused = await live.open();
    if (refused) {
      note();
      throw turnFailureError(planned.failure(refused), planned.sessionKey !== undefined);
    }
    const reader = encoder && live.read(0);
    if (encoder && reader) return streamReply(reader, encoder, headers, request.signal, note);

    const { outcome, response, failure } = await live.ended;
    note();
    if (failure && (outcome.status === 'failed' || outcome.reason === 'shutdown')) {
      throw turnFailureError(planned.failure(failure), planned.sessionKey !== undefined);
    }
    return { status: 200, headers: { ...JSON_HEADERS, ...headers, ...connectionHeader(live.connection) }, body: response };
  }
}
