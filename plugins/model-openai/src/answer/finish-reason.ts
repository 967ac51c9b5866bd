import type { ModelEnd } from '@plugboard/kernel/contracts';
import { isText } from '../json/json.js';

type Reason = ModelEnd['reason'];

/** How an answer ended, and the server's word for it. */
export type Finish =
  | { readonly kind: 'reason'; readonly reason: Reason; readonly word: string }
  /** A word that means a failure, or an unknown one. */
  | { readonly kind: 'failure' | 'unknown'; readonly word: string };

/**
 * Reads a finish reason. Besides the protocol's own words, servers send those of the APIs behind
 * them (Gemini, Anthropic, Bedrock, Mistral, Zhipu, vLLM), in any case, and with prefixes as in
 * `FinishReason.MAX_TOKENS`.
 *
 * @param native OpenRouter's `native_finish_reason`, the word of the server behind it. It decides
 *   if it says more than `finishReason`.
 * @returns undefined if neither is a non-empty string.
 */
export function readFinishReason(finishReason: unknown, native?: unknown): Finish | undefined {
  const finish = isText(finishReason) ? finishOf(finishReason) : undefined;
  const upstream = isText(native) ? finishOf(native) : undefined;
  if (upstream?.kind === 'failure') return upstream;
  const isPlain = finish?.kind !== 'failure' && (finish?.kind !== 'reason' || finish.reason === 'stop');
  return isPlain && upstream?.kind === 'reason' ? upstream : (finish ?? upstream);
}

function finishOf(word: string): Finish {
  const exact = REASONS.get(word);
  if (exact !== undefined) return { kind: 'reason', reason: exact, word };
  const plain = word
    .slice(word.lastIndexOf('.') + 1)
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, '_');
  const reason = REASONS.get(plain);
  if (reason !== undefined) return { kind: 'reason', reason, word };
  return { kind: FAILURES.has(plain) ? 'failure' : 'unknown', word };
}

function words(reason: Reason, list: string): [string, Reason][] {
  return list.split(' ').map((word) => [word, reason]);
}

const REASONS: ReadonlyMap<string, Reason> = new Map([
  ...words('stop', 'stop end_turn eos eos_token end stop_sequence stopped complete completed finished finish done'),
  ...words('length', 'length max_tokens model_length max_output_tokens max_completion_tokens max_length token_limit'),
  ...words('length', 'model_context_window_exceeded'),
  ...words('tool_calls', 'tool_calls tool_call tool_use function_call function_calls'),
  ...words('content_filter', 'content_filter content_filtered safety sensitive recitation blocklist prohibited_content spii'),
  ...words('content_filter', 'image_safety model_armor language guardrail_intervened refusal moderation'),
]);

const FAILURES: ReadonlySet<string> = new Set(
  (
    'error failed abort aborted cancelled canceled network_error insufficient_system_resource server_error internal_error ' +
    'upstream_error timeout timed_out overloaded malformed_function_call malformed_model_output malformed_tool_use ' +
    'malformed_response unexpected_tool_call too_many_tool_calls missing_thought_signature'
  ).split(' '),
);
