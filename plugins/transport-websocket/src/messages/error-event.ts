import { protocolCode } from '@plugboard/openai-protocol';
import { HttpError } from '@plugboard/transport-http';

interface ErrorFields {
  readonly type?: string;
  readonly code?: string | null;
  readonly message?: string;
  readonly param?: string | null;
}

/** Codes of errors that have no code over HTTP. */
const CODES: Readonly<Record<number, string>> = { 400: 'model_not_found', 403: 'agent_forbidden', 502: 'svc_error' };

/**
 * The `error` event for a request that was not accepted. Status, code and message are those of the
 * same request over HTTP.
 *
 * @param streamId the `stream_id` of the request, if it is known.
 * @param conversation the one that cannot be watched.
 */
export function errorEvent(error: unknown, streamId?: string, conversation?: string): string {
  const refusal = error instanceof HttpError ? error : internal();
  const { status, headers } = refusal;
  const fields = (refusal.body as { readonly error?: ErrorFields } | undefined)?.error ?? {};
  const type = fields.type ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  const code = fields.code ?? protocolCode(refusal.code);
  const wait = Number(headers['retry-after-ms'] ?? Number(headers['retry-after'] ?? Number.NaN) * 1000);
  return JSON.stringify({
    type: 'error',
    status,
    error: {
      type,
      code: code ?? (type === 'svc_error' ? CODES[status] : undefined) ?? (status >= 500 ? 'internal_error' : 'invalid_request'),
      message: fields.message ?? refusal.message,
      param: fields.param ?? null,
      ...(Number.isFinite(wait) && { retry_after_ms: wait }),
    },
    ...(streamId !== undefined && { stream_id: streamId }),
    ...(conversation !== undefined && { conversation }),
  });
}

/** For anything that is not an answer to the client. The caller logs the error itself. */
function internal(): HttpError {
  return new HttpError(500, 'The server had an error while processing your request. The details are in its log.', {
    code: 'internal_error',
  });
}
