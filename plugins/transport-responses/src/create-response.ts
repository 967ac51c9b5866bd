import type { Extensions } from '@plugboard/kernel';
import {
  isCodex,
  type LiveResponse,
  type PlannedResponse,
  parseRequest,
  type ResponseRequest,
  type ResponseService,
} from '@plugboard/open-responses';
import { claimError, invalidValue } from '@plugboard/openai-protocol';
import { requireStreamEncoder, type StreamEncoder } from '@plugboard/transport-chat-completions';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import {
  agentHeader,
  busyModeOf,
  connectionHeader,
  idempotencyKeyOf,
  ignoredParamsHeader,
  joinFingerprint,
  requestFingerprint,
} from '@plugboard/turn-routes';
import { ResponseRecorder, replyTo } from './recorded-response.js';
import { cancelWhenStopped, JSON_HEADERS, onAbort, streamReply } from './reply.js';

/**
 * `POST /v1/responses`.
 *
 * 1. It checks the body, and plans the response: its agent, and what it continues.
 * 2. For a repeated `Idempotency-Key` it answers as before.
 * 3. Otherwise it runs the response, and answers with the response object or with its events.
 */
export class CreateResponse implements HttpRoute {
  readonly method = 'POST';
  readonly path = '/v1/responses';
  readonly access = ['chat'] as const;
  readonly body = 'json';
  readonly startsWork = true;
  readonly #name: string;
  readonly #services: Extensions<ResponseService>;
  readonly #encoders: Extensions<StreamEncoder>;

  /** @param name the key of the entry. */
  constructor(name: string, services: Extensions<ResponseService>, encoders: Extensions<StreamEncoder>) {
    this.#name = name;
    this.#services = services;
    this.#encoders = encoders;
  }

  /**
   * @throws ProtocolError for an invalid request, or a turn that failed before the head was sent.
   * @throws TurnError
   */
  async handle(request: HttpRequest): Promise<HttpReply> {
    const { principal } = request;
    const body = parseRequest(request.body);
    const idempotencyKey = idempotencyKeyOf(request, invalidValue);
    const encoder = body.stream === true ? requireStreamEncoder(this.#encoders) : undefined;
    const planned = await this.#plan(request, body, encoder !== undefined);
    request.note({ agent: planned.target.name, stream: encoder !== undefined, response_id: planned.id });
    if (idempotencyKey === undefined) {
      request.dropBody();
      return this.#answer(request, planned, await planned.create(), encoder);
    }

    const key = { project: principal.project, route: this.path, key: idempotencyKey };
    const fingerprint = requestFingerprint(request.body, planned.sessionKey, principal);
    const claimed = await this.#services.one().claim(key, fingerprint);
    if (claimed.kind === 'replay') return replyTo(claimed.text, encoder, headersOf(planned));
    if (claimed.kind !== 'new') throw claimError(claimed);
    request.dropBody();
    const recorder = new ResponseRecorder(planned);
    return this.#answer(request, planned, await planned.create({ claim: claimed.claim, recorder }), encoder);
  }

  #plan(request: HttpRequest, body: ResponseRequest, streams: boolean): Promise<PlannedResponse> {
    const { principal, requestId } = request;
    return this.#services.one().plan(body, {
      principal,
      requestId,
      transport: this.#name,
      busy: busyModeOf(request, invalidValue),
      fingerprint: joinFingerprint(request),
      incremental: streams,
      resumable: streams,
      extensions: false,
      isCodex: isCodex(request.headers),
      account: request.account,
      inputLimit: { bytes: request.bodyLimit, setting: 'bodyLimit' },
    });
  }

  async #answer(
    request: HttpRequest,
    planned: PlannedResponse,
    response: LiveResponse,
    encoder: StreamEncoder | undefined,
  ): Promise<HttpReply> {
    const headers = headersOf(planned);
    const note = () => request.note(response.logFields.fields());
    cancelWhenStopped(response, request.signal);
    if (!encoder) onAbort(request.signal, () => response.abandon());
    const refused = await response.open();
    if (refused) {
      note();
      throw planned.errorOf(refused);
    }
    const reader = encoder && response.read(0, false);
    if (encoder && reader) return streamReply(reader, encoder, headers, request.signal, note);

    const { outcome, response: text, failure } = await response.ended;
    note();
    if (failure && (outcome.status === 'failed' || outcome.reason === 'shutdown')) throw planned.errorOf(failure);
    return { status: 200, headers: { ...JSON_HEADERS, ...headers, ...connectionHeader(response.connection) }, body: text };
  }
}

function headersOf({ target, ignored }: PlannedResponse): Readonly<Record<string, string>> {
  return { ...agentHeader(target), ...ignoredParamsHeader(ignored) };
}
