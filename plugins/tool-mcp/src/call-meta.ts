import type { Principal, ToolCall } from '@plugboard/kernel';
import type { McpConfig } from './config.js';

/** Of a call's headers, those that MCP has a place for: the trace's, by their own names in `_meta` (SEP-414). */
const TRACE_HEADERS = ['traceparent', 'tracestate', 'baggage'];

/** Keys of `_meta` have a prefix, unless they are MCP's own. */
const PRINCIPAL = 'plugboard/principal';

/**
 * What goes along with a call in its `_meta`, beside the arguments: the model neither writes nor sees it.
 * @param forward whether the server is told who calls. It is then told what Plugboard knows, and never the credential itself.
 */
export function metaOf({ headers, principal }: ToolCall, forward: McpConfig['forward']): Readonly<Record<string, unknown>> {
  const trace = TRACE_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]]));
  return { ...Object.fromEntries(trace), ...(forward === 'principal' && { [PRINCIPAL]: told(principal) }) };
}

/** In the open scope, the project and nothing else: nobody has said who they are. */
function told({ project, token, subject, claims }: Principal): Readonly<Record<string, unknown>> {
  return {
    project,
    ...(token !== undefined && { token }),
    ...(subject !== undefined && { subject }),
    ...(claims !== undefined && { claims }),
  };
}
