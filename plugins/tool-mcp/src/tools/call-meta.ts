import type { Principal, ToolCall } from '@plugboard/kernel';
import type { McpConfig } from '../config.js';

/** Headers of a call that MCP defines keys for in `_meta`: those of the trace (SEP-414). */
const TRACE_HEADERS = ['traceparent', 'tracestate', 'baggage'];

/** Keys of `_meta` have a prefix, unless MCP defines them. */
const PRINCIPAL = 'plugboard/principal';
/** The same for the same call, so that a server can refuse the second of two. */
const IDEMPOTENCY_KEY = 'plugboard/idempotency-key';

/**
 * Returns the `_meta` of a call, which the model neither writes nor sees.
 *
 * @param forward whether it names the caller. The credential is never included.
 */
export function metaOf(call: ToolCall, forward: McpConfig['forward']): Readonly<Record<string, unknown>> {
  const { headers, principal, turnId, index } = call;
  const trace = TRACE_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]]));
  return {
    ...Object.fromEntries(trace),
    [IDEMPOTENCY_KEY]: `${turnId}/${index}`,
    ...(forward === 'principal' && { [PRINCIPAL]: callerOf(principal) }),
  };
}

/** In the open scope only the project is known. */
function callerOf({ project, token, subject, claims }: Principal): Readonly<Record<string, unknown>> {
  return {
    project,
    ...(token !== undefined && { token }),
    ...(subject !== undefined && { subject }),
    ...(claims !== undefined && { claims }),
  };
}
