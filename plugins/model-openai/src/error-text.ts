import { isObject, isText } from './json.js';

/** How deep a message may lie: `[{"error":{"message":"…"}}]` is the deepest that is known. */
const DEEPEST = 4;

/**
 * What an error says for people, in any of the forms that model servers give it: `{"error":{"message":"…"}}` is the protocol's; others are
 * `{"error":"…"}`, `{"message":"…"}`, `{"detail":"…"}`, `{"detail":[{"msg":"…"}]}`, and these in a list. Undefined where it says nothing.
 */
export function errorText(error: unknown): string | undefined {
  let said = error;
  for (let depth = 0; depth <= DEEPEST; depth++) {
    if (isText(said)) return said;
    if (Array.isArray(said)) said = said[0];
    else if (isObject(said)) said = said.message ?? said.error ?? said.detail ?? said.msg;
  }
  return undefined;
}

/** The same of a body, which may be JSON or plain text. A page of HTML says nothing. */
export function errorTextOfBody(body: string): string | undefined {
  const text = body.trim();
  if (text === '' || text.startsWith('<')) return undefined;
  try {
    return errorText(JSON.parse(text)) ?? text;
  } catch {
    return text; // plain text
  }
}
