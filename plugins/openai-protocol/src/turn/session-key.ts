import { isBlankKey, sessionKeyProblem } from '@plugboard/kernel/contracts';
import { invalidValue, stringTooLong } from '../errors/request-errors.js';

/** Checks a session key or user; blank ones count as absent. @throws ProtocolError 400 */
export function parseSessionKey(value: string | undefined, param: string): string | undefined {
  if (value === undefined || isBlankKey(value)) return undefined;
  const problem = sessionKeyProblem(value);
  if (!problem) return value;
  throw problem.kind === 'too-long'
    ? stringTooLong(param, problem.limit, problem.bytes, 'bytes')
    : invalidValue(param, problem.why);
}
