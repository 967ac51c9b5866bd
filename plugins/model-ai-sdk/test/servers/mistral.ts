import {
  type Body,
  type Events,
  FUNCTION_NAME,
  formatOf,
  isRecord,
  listOf,
  type NativeAnswer,
  type NativeRequest,
  Refused,
  refuseIf,
  refuseMedia,
} from './native-server.js';

export const MISTRAL_KEY = 'mistral-0123456789abcdef01234567';
export const MISTRAL_MODEL = 'magistral-medium-2509';

/** Mistral's chat completions: `POST /chat/completions`, with thoughts as parts of the content. */
export const mistral = formatOf({
  check,
  events,
  frame: (chunk: Body) => `data: ${JSON.stringify(chunk)}\n\n`,
  errorBody: ({ message, code }) => ({ object: 'error', message, type: 'invalid_request', param: null, code: code || null }),
});

function check({ headers, body }: NativeRequest): void {
  if (!String(headers.authorization).startsWith('Bearer mistral-')) throw new Refused('Unauthorized', 401);
  if (body.model !== MISTRAL_MODEL) throw new Refused(`Invalid model: ${body.model}`, 400, '1500');
  refuseMedia(body);
  const messages = listOf(body.messages);
  for (const [index, { role, content, tool_calls: calls }] of messages.entries()) {
    const before = messages[index - 1]?.role;
    refuseIf(role === before && role !== 'tool', `Conversation roles must alternate: ${role} after ${role}`);
    refuseIf(role === 'user' && before === 'tool', "Unexpected role 'user' after role 'tool'");
    refuseIf(role === 'system' && index > 0, 'system must be the first message');
    const isEmpty = content === '' || content === null || (Array.isArray(content) && content.length === 0);
    refuseIf(role === 'assistant' && isEmpty && calls === undefined, 'Assistant message must have either content or tool_calls');
    for (const part of listOf(content)) refuseIf(part.type === 'text' && part.text === '', 'Input should not be empty');
    checkCalls(messages, index);
  }
  refuseIf(
    !['user', 'tool'].includes(String(messages.at(-1)?.role)),
    'Expected last role User or Tool (or Assistant with prefix True)',
  );
}

function checkCalls(messages: readonly Body[], index: number): void {
  const calls = listOf(messages[index]?.tool_calls);
  const ids = calls.map(({ id }) => id);
  const results = messages.slice(index + 1, index + 1 + calls.length).map((message) => message.tool_call_id);
  for (const id of ids) {
    refuseIf(!/^[A-Za-z0-9]{9}$/.test(String(id)), `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`);
    refuseIf(!results.includes(id), 'Not the same number of function calls and responses');
  }
  for (const { function: called } of calls)
    refuseIf(
      !isRecord(called) || !FUNCTION_NAME.test(String(called.name)),
      'Function name must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.',
    );
  for (const { function: called } of calls)
    refuseIf(!isRecord(called) || !isRecord(JSON.parse(String(called.arguments))), 'Function call arguments must be an object');
}

let calls = 0;

function* events(answer: NativeAnswer, { body }: NativeRequest): Events<Body> {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    id: 'cmpl_1',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: String(body.model),
    choices: [{ index: 0, delta, finish_reason }],
  });
  yield chunk({ role: 'assistant', content: '' });
  for (const text of answer.thinking ?? []) yield chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] });
  for (const text of answer.text ?? []) yield typeof text === 'function' ? text : chunk({ content: text });
  const tool_calls = (answer.calls ?? []).map(({ name, input }, index) => ({
    index,
    id: `c${String(++calls).padStart(8, '0')}`,
    function: { name, arguments: JSON.stringify(input) },
  }));
  if (tool_calls.length > 0) yield chunk({ content: '', tool_calls });
  if (answer.finish === null) return;
  const [prompt, cached, tokens, thoughts] = answer.usage ?? [10, 0, 5, 0];
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: tokens,
    total_tokens: prompt + tokens,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: thoughts },
  };
  yield { ...chunk({ content: '' }, answer.finish ?? (answer.calls ? 'tool_calls' : 'stop')), usage };
}
