import { CONVERSATION_PREFIX } from '@plugboard/kernel/contracts';
import { invalidValue, optionalString, parseSessionKey } from '@plugboard/openai-protocol';

/**
 * Checks the key of a new session.
 *
 * @throws ProtocolError 400 if it is invalid or looks like a conversation id.
 */
export function keyOf(value: unknown, param: string): string | undefined {
  const key = parseSessionKey(optionalString(value, param), param);
  if (key?.startsWith(CONVERSATION_PREFIX)) {
    throw invalidValue(param, `a key must not begin with '${CONVERSATION_PREFIX}', which is reserved for ids of the server`);
  }
  return key;
}
