import type { Extensions } from '@plugboard/kernel';
import type { Failure, TurnIdempotency } from '@plugboard/kernel/contracts';
import {
  type EndedAnswer,
  isCodex,
  type PlannedResponse,
  parseRequest,
  type ResponseService,
  replayEvents,
} from '@plugboard/open-responses';
import { claimError, formatError, invalidValue, type ProtocolError, turnFailureError } from '@plugboard/openai-protocol';
import { requireStreamEncoder, type StreamEncoder } from '@plugboard/transport-chat-completions';
import type { HttpReply, HttpRequest } from '@plugboard/transport-http';
import {
  agentHeader,
  busyModeOf,
  connectionHeader,
  type Dialect,
  ignoredParamsHeader,
  joinFingerprint,
  type ReadyTurn,
} from '@plugboard/turn-routes';
import { cancelWhenStopped, framesOf, JSON_HEADERS, onAbort, streamReply } from './reply.js';

/** The dialect of `POST /v1/responses`. A response may outlive its request: its service runs it. */
export class Responses implements Dialect {
  readonly path = '/v1/responses';
  readonly formatError = formatError;
  readonly invalid = invalidValue;
  readonly claimError = claimError;
  readonly #name: string;
  readonly #services: Extensions<ResponseService>;
  readonly #encoders: Extensions<StreamEncoder>;

  /** @param name the key of the entry. */
  constructor(name: string, services: Extensions<ResponseService>, encoders: Extensions<StreamEncoder>) {
    this.#name = name;
    this.#services = services;
    this.#encoders = encoders;
  }

  errorOf(failure: Failure, stateful: boolean): ProtocolError {
    return turnFailureError(failure, stateful, 'input');
  }

  /** @throws ProtocolError for an invalid request. @throws TurnError */
  async read(request: HttpRequest): Promise<ReadyTurn> {
    const body = parseRequest(request.body);
    const encoder = body.stream === true ? requireStreamEncoder(this.#encoders) : undefined;
    const planned = await this.#services.one().plan(body, {
      principal: request.principal,
      requestId: request.requestId,
      transport: this.#name,
      busy: busyModeOf(request, invalidValue),
      fingerprint: joinFingerprint(request),
      incremental: encoder !== undefined,
      extensions: false,
      isCodex: isCodex(request.headers),
      account: request.account,
      inputLimit: { bytes: request.bodyLimit, setting: 'bodyLimit' },
    });
    request.note({ response_id: planned.id });
    return {
      target: planned.target,
      sessionKey: planned.sessionKey,
      answer: {
        head: {},
        headers: ignoredParamsHeader(planned.ignored),
        stream: encoder && {
          headers: encoder.headers,
          replay: (_, { response }: EndedAnswer) => replayed(replayEvents(response), encoder),
        },
        errorOf: planned.errorOf,
        fold: () => planned.fold(),
        bodyOf: (_, { response }: EndedAnswer) => response,
      },
      reply: (idempotency) => answer(request, planned, idempotency, encoder),
    };
  }
}

/** Runs a response, and answers with the response object or with its events. */
async function answer(
  request: HttpRequest,
  planned: PlannedResponse,
  idempotency: TurnIdempotency | undefined,
  encoder: StreamEncoder | undefined,
): Promise<HttpReply> {
  const response = await planned.create(idempotency);
  const headers = { ...agentHeader(planned.target), ...ignoredParamsHeader(planned.ignored) };
  const note = () => request.note(response.logFields.fields());
  const opening = response.open();
  cancelWhenStopped(response, request.signal);
  if (!encoder) onAbort(request.signal, () => response.leave());
  const refused = await opening;
  if (refused) {
    note();
    throw planned.errorOf(refused);
  }
  const { reader } = response;
  if (encoder && reader) return streamReply(reader, encoder, headers, request.signal, note);

  const { outcome, response: text, failure } = await response.ended;
  note();
  if (failure && (outcome.status === 'failed' || outcome.reason === 'shutdown')) throw planned.errorOf(failure);
  return { status: 200, headers: { ...JSON_HEADERS, ...headers, ...connectionHeader(response.encoder.connection) }, body: text };
}

async function* replayed(events: readonly string[], encoder: StreamEncoder): AsyncGenerator<string> {
  yield framesOf(events, encoder) + encoder.done;
}
