import type { Failure, FailureCode, TurnFinished, Usage } from '@plugboard/kernel/contracts';
import { isTemporary, messageWithWait } from '@plugboard/openai-protocol';

/** How a response ended: its status, and the reason or error if it is not complete. */
export interface Outcome {
  readonly status: 'completed' | 'incomplete' | 'failed';
  /** Present if it is incomplete. */
  readonly reason?: IncompleteReason | undefined;
  /** Present if it failed. */
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** Usage of all model calls; undefined until a model server reports some. */
  readonly usage?: Usage | undefined;
}

/** How a response ended, and what is left of it. */
export interface ResponseEnd {
  readonly outcome: Outcome;
  /** The response at its end, as JSON. */
  readonly response: string;
  /** The failure, if the turn failed. */
  readonly failure: Failure | undefined;
  /** The number of the turn in its session; undefined if the turn left no trace in it. */
  readonly turn: number | undefined;
}

type IncompleteReason =
  | 'max_output_tokens'
  | 'max_tool_calls'
  | 'max_steps'
  | 'budget'
  | 'content_filter'
  /** By its own caller. */
  | 'cancelled'
  /** By a newer request to its session. */
  | 'interrupted'
  /** The server stopped. */
  | 'shutdown';

/** @param usage of all model calls of the turn. */
export function outcomeOfFinish({ reason, limit, usage }: TurnFinished): Outcome {
  if (limit) return { status: 'incomplete', reason: limit === 'max_tokens' ? 'max_output_tokens' : limit, usage };
  if (reason === 'length') return { status: 'incomplete', reason: 'max_output_tokens', usage };
  if (reason === 'content_filter') return { status: 'incomplete', reason: 'content_filter', usage };
  return { status: 'completed', usage };
}

/** Reasons of a response that ends between two steps: nothing in it was cut. */
export const BETWEEN_STEPS: ReadonlySet<IncompleteReason | undefined> = new Set(['max_steps', 'max_tool_calls', 'budget']);

/** The reference's codes, where it has one for a failure. */
const ERROR_CODES: Partial<Record<FailureCode, string>> = {
  rate_limited: 'rate_limit_exceeded',
  content_filter: 'content_policy_violation',
};

/**
 * @param usage of the model calls before the failure, if known.
 * @param isCodex whether the client is Codex CLI.
 */
export function outcomeOfFailure(failure: Failure, usage: Usage | undefined, isCodex = false): Outcome {
  switch (failure.code) {
    case 'turn_cancelled':
      return { status: 'incomplete', reason: 'cancelled', usage };
    case 'turn_interrupted':
      return { status: 'incomplete', reason: 'interrupted', usage };
    case 'stopped':
    case 'draining':
      return { status: 'incomplete', reason: 'shutdown', usage };
    default:
      return {
        status: 'failed',
        error: {
          code: isCodex ? codexCode(failure) : (ERROR_CODES[failure.code] ?? failure.code),
          message: messageWithWait(failure),
        },
        usage,
      };
  }
}

/** Codes after which Codex CLI says what its user can do. */
const KNOWN_TO_CODEX: ReadonlySet<FailureCode> = new Set(['context_length_exceeded', 'insufficient_quota']);

/**
 * The code for Codex CLI (CL-8). It waits and repeats the request after the first two, ends the
 * turn after the others, and repeats the request at once after a code that it does not know.
 */
function codexCode(failure: Failure): string {
  if (isTemporary(failure)) return failure.code === 'rate_limited' ? 'rate_limit_exceeded' : 'slow_down';
  // Such as a model server that broke off: nothing has happened yet that a repeat could do twice.
  if (failure.retryable && !failure.toolsRan) return failure.code;
  return KNOWN_TO_CODEX.has(failure.code) ? failure.code : 'invalid_prompt';
}
