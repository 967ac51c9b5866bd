import { CONVERSATION_PREFIX } from '@plugboard/kernel';
import { invalidValue, optionalString, parseSessionKey } from '@plugboard/openai-protocol';

/** The key that a new session is to have. @throws ProtocolError 400 for one that could be taken for an opaque id, besides. */
export function keyOf(value: unknown, param: string): string | undefined {
  const key = parseSessionKey(optionalString(value, param), param);
  if (key?.startsWith(CONVERSATION_PREFIX)) {
    throw invalidValue(param, `a key must not begin with '${CONVERSATION_PREFIX}', as the ids do that the server gives`);
  }
  return key;
}
