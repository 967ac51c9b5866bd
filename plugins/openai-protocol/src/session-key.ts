import { isBlankKey, sessionKeyProblem } from '@plugboard/kernel';
import { invalidValue, stringTooLong } from './request-errors.js';

/**
 * A word by which callers know a session, or themselves; undefined where it is blank, which is as good as absent.
 *
 * @throws ProtocolError 400 for what can be no session's key, nor a part of one.
 */
export function parseSessionKey(value: string | undefined, param: string): string | undefined {
  if (value === undefined || isBlankKey(value)) return undefined;
  const fault = sessionKeyProblem(value);
  if (!fault) return value;
  throw fault.kind === 'too-long' ? stringTooLong(param, fault.limit, fault.bytes, 'bytes') : invalidValue(param, fault.why);
}
