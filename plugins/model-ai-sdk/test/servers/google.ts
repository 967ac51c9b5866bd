import {
  type Body,
  type Events,
  type Format,
  formatOf,
  isRecord,
  listOf,
  type NativeAnswer,
  type NativeRequest,
  Refused,
  refuseIf,
  refuseMedia,
} from './native-server.js';
import { sign } from './signatures.js';

export const GOOGLE_KEY = 'AIzaSy0123456789abcdefghijklmnopqrstuvw';
export const GOOGLE_MODEL = 'gemini-3-pro-preview';

export const VERTEX_KEY = 'AQ.Ab8RN6J0123456789abcdefghijklmnop';

/** The beginning of the tokens that Application Default Credentials become. */
const TOKENS = 'Bearer ya29.';

interface Gemini {
  /** The beginning of its keys. */
  readonly keys: string;
  /** Whether it takes tokens, too. */
  readonly takesTokens: boolean;
  /** Whether calls have ids. */
  readonly hasCallIds: boolean;
}

/**
 * The Gemini API: `POST /models/<model>:streamGenerateContent`. The first of parallel calls is
 * signed.
 */
export const google = gemini({ keys: 'AIza', takesTokens: false, hasCallIds: true });

/** The same on Vertex, with an API key or a token. */
export const vertex = gemini({ keys: 'AQ.', takesTokens: true, hasCallIds: false });

function gemini(of: Gemini): Format {
  return formatOf({
    check: (request) => check(request, of),
    events,
    frame,
    errorBody: ({ status, message, code }) => ({ error: { code: status, message, status: code || 'INVALID_ARGUMENT' } }),
  });
}

export function frame(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\r\n\r\n`;
}

const NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/;
const BAD_NAME =
  'Invalid function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.';

function check({ path, headers, body }: NativeRequest, { keys, takesTokens, hasCallIds }: Gemini): void {
  const { authorization, 'x-goog-api-key': key } = headers;
  const isToken = takesTokens && key === undefined && authorization !== undefined;
  if (isToken && !authorization.startsWith(TOKENS))
    throw new Refused('Request had invalid authentication credentials.', 401, 'UNAUTHENTICATED');
  if (!isToken && !String(key).startsWith(keys)) throw new Refused('API key not valid. Please pass a valid API key.');
  const account = isToken ? 'project' : key;
  if (!path.includes(`/models/${GOOGLE_MODEL}:`))
    throw new Refused(`${path} is not found for API version v1beta`, 404, 'NOT_FOUND');
  refuseMedia(body);
  refuseIf(JSON.stringify(body).includes('"image/gif"'), 'Unsupported MIME type: image/gif');
  for (const { name } of listOf(listOf(body.tools)[0]?.functionDeclarations)) refuseIf(!NAME.test(String(name)), BAD_NAME);
  const contents = listOf(body.contents);
  refuseIf(contents.length === 0, 'contents is not specified');
  refuseIf(contents[0]?.role !== 'user', 'Please ensure that the conversation starts with a user turn.');
  for (const [index, content] of contents.entries()) {
    const parts = listOf(content.parts);
    refuseIf(parts.length === 0, `contents[${index}].parts must not be empty.`);
    for (const part of parts) {
      const isEmpty = part.text === '' && part.thoughtSignature === undefined;
      refuseIf(
        isEmpty,
        `contents[${index}].parts: contents.parts.data: required oneof field 'data' must have one initialized field`,
      );
      const { thoughtSignature: signature } = part;
      const isKnown =
        signature === undefined ||
        signature === 'skip_thought_signature_validator' ||
        signature === sign(account, GOOGLE_MODEL, '', '');
      refuseIf(!isKnown, 'Thought signature is not valid.');
    }
    const calls = parts.filter(({ functionCall }) => functionCall !== undefined);
    const next = contents[index + 1];
    const answers = listOf(next?.parts).filter(({ functionResponse }) => functionResponse !== undefined);
    if (calls.length > 0) {
      refuseIf(
        contents[index - 1]?.role !== 'user',
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      );
      refuseIf(
        answers.length !== calls.length,
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      );
      refuseIf(calls[0]?.thoughtSignature === undefined, 'Function call is missing a thought_signature in functionCall parts.');
    } else
      refuseIf(answers.length > 0, 'Please ensure that function response turn comes immediately after a function call turn.');
    for (const { functionCall, functionResponse } of hasCallIds ? [] : parts) {
      const one = functionCall ?? functionResponse;
      refuseIf(isRecord(one) && one.id !== undefined, `Unknown name "id" at contents[${index}].parts.`);
    }
    for (const { functionCall, functionResponse } of parts) {
      const one = functionCall ?? functionResponse;
      refuseIf(isRecord(one) && !NAME.test(String(one.name)), BAD_NAME);
    }
    for (const { functionCall } of calls)
      refuseIf(!isRecord(functionCall) || !isRecord(functionCall.args), 'Invalid value at function_call.args');
  }
  // `parametersJsonSchema` takes what `parameters` refuses.
  for (const { parameters } of listOf(listOf(body.tools)[0]?.functionDeclarations))
    refuseIf(
      /"\$ref"|"enum":\[\d/.test(JSON.stringify(parameters ?? {})),
      'Unknown name "$ref" at function_declarations.parameters',
    );
}

function* events(answer: NativeAnswer, { headers }: NativeRequest): Events<Body> {
  const signature = sign(headers['x-goog-api-key'], GOOGLE_MODEL, '', '');
  const chunk = (parts: object[], more: object = {}) => ({
    candidates: [{ index: 0, content: { role: 'model', parts }, ...more }],
    responseId: 'r1',
  });
  for (const text of answer.thinking ?? []) yield chunk([{ text, thought: true }]);
  for (const text of answer.text ?? []) yield typeof text === 'function' ? text : chunk([{ text }]);
  for (const [index, { id, name, input }] of (answer.calls ?? []).entries()) {
    const functionCall = { ...(id === undefined ? {} : { id }), name, args: input };
    yield chunk([{ functionCall, ...(index === 0 ? { thoughtSignature: signature } : {}) }]);
  }
  if (answer.finish === null) return;
  const [prompt, cached, tokens, thoughts] = answer.usage ?? [10, 0, 5, 0];
  yield {
    ...chunk([], { finishReason: answer.finish ?? 'STOP' }),
    usageMetadata: {
      promptTokenCount: prompt,
      cachedContentTokenCount: cached,
      candidatesTokenCount: tokens - thoughts,
      thoughtsTokenCount: thoughts,
      totalTokenCount: prompt + tokens,
    },
  };
}
