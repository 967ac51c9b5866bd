import { isObject, isText } from '../json/json.js';

/** How many levels are searched for a message. The deepest known form is `[{"error":{"message":"…"}}]`. */
const MAX_DEPTH = 4;

/**
 * Finds the message of an error in any known form: `{"error":{"message":"…"}}` is the protocol's;
 * others are `{"error":"…"}`, `{"message":"…"}`, `{"detail":"…"}`, `{"detail":[{"msg":"…"}]}`, and
 * these in a list. Returns undefined if there is none.
 */
export function errorText(error: unknown): string | undefined {
  let value = error;
  for (let depth = 0; depth <= MAX_DEPTH; depth++) {
    if (isText(value)) return value;
    if (Array.isArray(value)) value = value[0];
    else if (isObject(value)) value = value.message ?? value.error ?? value.detail ?? value.msg;
  }
  return undefined;
}

/** Finds the message in an error body, which may be JSON or plain text. HTML has none. */
export function errorTextOfBody(body: string): string | undefined {
  const text = body.trim();
  if (text === '' || text.startsWith('<')) return undefined;
  try {
    return errorText(JSON.parse(text)) ?? text;
  } catch {
    return text; // plain text
  }
}
