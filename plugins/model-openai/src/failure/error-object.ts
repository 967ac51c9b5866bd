import { isObject, isText } from '../json/json.js';
import { parseJson } from '../json/split-json.js';

type Fields = Readonly<Record<string, unknown>>;

/** Levels that are searched for a message. The deepest known: `[{"error":{"message":"{…}"}}]`. */
const MAX_DEPTH = 6;

/** The members that may contain a message, the most specific first. */
const MESSAGE_KEYS = [
  'message',
  'error',
  'detail',
  'msg',
  'errors',
  'error_msg',
  'error_message',
  'status_msg',
  'base_resp',
  'Message',
  'error_description',
  'reason',
];

/**
 * Finds an error in a chunk, or in a body with status 200. The protocol's form is `{"error":{…}}`.
 * Others are `choices[0].error` (OpenRouter), `x_groq.error` (Groq), `base_resp` (MiniMax), and
 * bodies without choices: `{"object":"error",…}` (vLLM), `{"type":"error",…}`,
 * `{"code":…,"message":…}`, `{"detail":…}`.
 */
export function findError(chunk: Fields, choice: Fields | undefined): unknown {
  if (isError(chunk.error)) return chunk.error;
  if (isError(choice?.error)) return choice.error;
  const { x_groq: groq, base_resp: base } = chunk;
  if (isObject(groq) && isError(groq.error)) return groq.error;
  if (isObject(base) && Number(base.status_code ?? 0) !== 0) return base;
  if (choice !== undefined || chunk.usage) return undefined;
  const { detail, message, msg, errors, error_msg: text } = chunk;
  const isNamed = chunk.object === 'error' || chunk.type === 'error';
  const hasText =
    [detail, message, msg, text].some(isText) || [detail, errors].some((list) => Array.isArray(list) && list.length > 0);
  return isNamed || hasText ? chunk : undefined;
}

function isError(value: unknown): value is object | string {
  return isText(value) || (isObject(value) && Object.keys(value).length > 0) || (Array.isArray(value) && value.length > 0);
}

/** Finds the message of an error in any known form. Returns undefined if there is none. */
export function errorText(error: unknown): string | undefined {
  return textIn(error, 0);
}

/** Finds the message in an error body, which may be JSON or plain text. HTML has none. */
export function errorTextOfBody(body: string): string | undefined {
  const text = body.trim();
  if (text === '' || text.startsWith('<')) return undefined;
  const value = parseJson(text);
  return (value === undefined ? undefined : errorText(value)) ?? text;
}

function textIn(value: unknown, depth: number): string | undefined {
  if (depth > MAX_DEPTH) return undefined;
  if (isText(value)) return /^\s*[[{]/.test(value) ? (textIn(parseJson(value), depth + 1) ?? value) : value;
  if (Array.isArray(value)) return textIn(value[0], depth + 1);
  if (!isObject(value)) return undefined;
  const text = providerText(value, depth);
  if (text !== undefined) return text;
  for (const key of MESSAGE_KEYS) {
    const text = textIn(value[key], depth + 1);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** OpenRouter's own message is mostly "Provider returned error"; see `metadata.raw`. */
function providerText({ metadata }: Fields, depth: number): string | undefined {
  if (!isObject(metadata)) return undefined;
  const text = textIn(metadata.raw, depth + 1);
  return text === undefined || !isText(metadata.provider_name) ? text : `${metadata.provider_name}: ${text}`;
}

/** What an error says about its cause, apart from its message. */
export interface ErrorCause {
  /** An HTTP status, 400 to 599. */
  readonly status: number | undefined;
  /** `type`, `code`, `status` and `reason`, in lower case. */
  readonly words: readonly string[];
}

/** Reads the codes of an error object, and of the one inside it. */
export function errorCause(error: unknown): ErrorCause {
  const words: string[] = [];
  let status: number | undefined;
  let value = error;
  for (let depth = 0; depth <= MAX_DEPTH && value !== undefined; depth++) {
    if (Array.isArray(value)) value = value[0];
    if (!isObject(value)) break;
    const { code, type, status: state, reason, http_code, status_code, raw_status_code, error_code } = value;
    for (const candidate of [code, state, http_code, status_code, raw_status_code, error_code, type, reason]) {
      if (isStatus(candidate)) status ??= Number(candidate);
      else if (isText(candidate) || typeof candidate === 'number') words.push(String(candidate).toLowerCase());
    }
    for (const detail of Array.isArray(value.details) ? value.details : [])
      if (isObject(detail) && isText(detail.reason)) words.push(detail.reason.toLowerCase());
    value = value.error;
  }
  return { status, words };
}

function isStatus(value: unknown): boolean {
  const status = typeof value === 'number' || isText(value) ? Number(value) : Number.NaN;
  return Number.isInteger(status) && status >= 400 && status <= 599;
}
