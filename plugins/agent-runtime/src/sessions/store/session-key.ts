import { isBlankKey, sessionKeyProblem, TurnError } from '@plugboard/kernel/contracts';

/** Between the user and the session in a key that has both. */
const SEPARATOR = ':';

/**
 * Checks the key of a session, as a transport names it: valid, or two valid keys joined by a colon.
 *
 * @param param how the caller knows it.
 * @throws TurnError `invalid_request`
 */
export function assertSessionKey(key: string, param: string): void {
  if (typeof key !== 'string') throw invalidKey(param, `it is of type ${typeof key}`);
  if (isBlankKey(key)) throw invalidKey(param, 'it is blank; leave the session out for a turn without one');
  const problem = sessionKeyProblem(key);
  if (!problem) return;
  if (problem.kind === 'malformed') throw invalidKey(param, problem.why);
  if (isJoined(key, problem.limit)) return;
  throw invalidKey(param, `it is longer than ${problem.limit} bytes; use a hash of it`);
}

/** Whether a long key is two keys of at most `limit` bytes with a colon between them. */
function isJoined(key: string, limit: number): boolean {
  for (let at = key.indexOf(SEPARATOR); at >= 0; at = key.indexOf(SEPARATOR, at + 1)) {
    const first = Buffer.byteLength(key.slice(0, at));
    if (first > limit) return false;
    if (Buffer.byteLength(key.slice(at + 1)) <= limit) return true;
  }
  return false;
}

function invalidKey(param: string, why: string): TurnError {
  return new TurnError('invalid_request', `The session key is not valid: ${why}.`, { param });
}
