import type { Principal, ToolCall } from '@plugboard/kernel';
import type { McpConfig } from '../config.js';

/** Headers of a call that MCP defines keys for in `_meta`: those of the trace (SEP-414). */
const TRACE_HEADERS = ['traceparent', 'tracestate', 'baggage'];

/** Keys of `_meta` have a prefix, unless MCP defines them. */
const PRINCIPAL = 'plugboard/principal';

/**
 * Returns the `_meta` of a call, which the model neither writes nor sees.
 *
 * @param forward whether it names the caller. The credential is never included.
 */
export function metaOf({ headers, principal }: ToolCall, forward: McpConfig['forward']): Readonly<Record<string, unknown>> {
  const trace = TRACE_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]]));
  return { ...Object.fromEntries(trace), ...(forward === 'principal' && { [PRINCIPAL]: callerOf(principal) }) };
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
