import type { ErrorReply, HttpError } from '@plugboard/transport-http';
import type { ErrorBody } from './errors.js';

/** Formats an `HttpError` as the protocol's error object: the `formatError` of its routes. */
export function formatError({ status, code, message }: HttpError): ErrorReply & { readonly body: ErrorBody } {
  if (code === 'insufficient_scope') return { body: { error: { message, type: 'svc_error' } } };
  return { body: { error: { message, type: typeOf(status), param: null, code: protocolCode(code) ?? null } } };
}

/** The protocol's code for a code of transport-http. */
export function protocolCode(code: string | undefined): string | undefined {
  return code === 'unauthorized' ? 'invalid_api_key' : code;
}

function typeOf(status: number): string {
  if (status === 429) return 'requests';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}
