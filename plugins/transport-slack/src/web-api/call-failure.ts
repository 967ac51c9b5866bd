import type { SendResult } from '@plugboard/channel-kit';

/** Why a call of the Web API failed. */
export interface CallFailure {
  /** Slack said no, asks to wait, or gave no answer: then it may have done it. */
  readonly kind: 'refused' | 'limited' | 'unanswered';
  /** The error of Slack, if it said no: `channel_not_found`. */
  readonly code?: string;
  /** Milliseconds to wait, if Slack says so. */
  readonly after?: number;
  /** A clause for operators. */
  readonly reason: string;
}

/** Errors of Slack that another attempt may not have. */
const PASSING: readonly unknown[] = [
  'internal_error',
  'fatal_error',
  'service_unavailable',
  'request_timeout',
  'ratelimited',
  'rate_limited',
];
/** Errors that a new token mends. */
export const TOKEN_ERRORS: readonly unknown[] = [
  'invalid_auth',
  'not_authed',
  'account_inactive',
  'token_revoked',
  'token_expired',
  'not_allowed_token_type',
  'user_removed_from_team',
  'team_disabled',
];

/** Classifies what a call of the client threw. */
export function failureOf(error: unknown): CallFailure {
  const { code, data, retryAfter, statusCode, original } = (error ?? {}) as Readonly<Record<string, unknown>>;
  switch (code) {
    case 'slack_webapi_platform_error': {
      const said = String((data as { error?: unknown } | undefined)?.error);
      return { kind: 'refused', code: said, reason: `Slack refuses it (${said})` };
    }
    case 'slack_webapi_rate_limited_error':
      return { kind: 'limited', after: Number(retryAfter) * 1000, reason: `Slack asks to wait ${retryAfter} s` };
    case 'slack_webapi_http_error':
      return { kind: 'unanswered', reason: `Slack answers with status ${statusCode}` };
    case 'slack_webapi_request_error':
      return { kind: 'unanswered', reason: `Slack does not answer (${causeOf(original)})` };
    default:
      return { kind: 'unanswered', reason: error instanceof Error ? error.message : String(error) };
  }
}

/** Whether Slack said no, and will again. */
export function isFinal({ kind, code }: CallFailure): boolean {
  return kind === 'refused' && !PASSING.includes(code) && !TOKEN_ERRORS.includes(code);
}

/** What a failed call means for a part of a reply. */
export function sendResultOf(error: unknown): SendResult<never> {
  const failure = failureOf(error);
  const { reason, after } = failure;
  return isFinal(failure) ? { kind: 'never', reason } : { kind: 'later', reason, ...(after === undefined ? {} : { after }) };
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no reason';
  const { code } = (error.cause ?? {}) as { code?: unknown };
  return error.name === 'TimeoutError' ? 'no answer in time' : typeof code === 'string' ? code : error.message;
}
