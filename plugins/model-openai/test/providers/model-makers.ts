import { forms, orderFault, PLAIN, STRICT_KEYWORDS } from './parts.js';
import { streamedAnswer, wholeAnswer } from './protocol.js';
import { assistantMessages, type Provider, type Sent, unknownField, unknownKeyword } from './provider-server.js';

const MISTRAL_FIELDS = {
  body: [
    'model',
    'messages',
    'tools',
    'tool_choice',
    'temperature',
    'top_p',
    'max_tokens',
    'stop',
    'stream',
    'random_seed',
    'response_format',
  ],
  message: ['role', 'content', 'tool_calls', 'tool_call_id', 'prefix'],
  function: ['name', 'description', 'parameters', 'strict'],
};
const GEMINI_FIELDS = {
  body: [
    'model',
    'messages',
    'tools',
    'tool_choice',
    'temperature',
    'top_p',
    'max_tokens',
    'max_completion_tokens',
    'stop',
    'stream',
    'stream_options',
  ],
  message: ['role', 'content', 'tool_calls', 'tool_call_id', 'extra_content'],
  function: ['name', 'description', 'parameters'],
};
const GEMINI_KEYWORDS = [
  ...['type', 'format', 'title', 'description', 'nullable', 'enum', 'items', 'properties', 'required', 'anyOf', 'pattern'],
  ...['minItems', 'maxItems', 'minLength', 'maxLength', 'minimum', 'maximum', 'minProperties', 'maxProperties'],
];

/** The servers of companies that train models. */
export const MODEL_MAKERS: Readonly<Record<string, Provider>> = {
  openai: {
    ...PLAIN,
    knowsRefusals: true,
    options: 'provider: openai, model: gpt-5-mini',
    refuse: ({ body }) => (body.max_tokens === undefined ? undefined : "Unsupported parameter: 'max_tokens'"),
    usage: [20, 5, 8, 2],
    ...forms({
      usage: {
        prompt_tokens: 20,
        completion_tokens: 5,
        total_tokens: 25,
        prompt_tokens_details: { cached_tokens: 8 },
        completion_tokens_details: { reasoning_tokens: 2 },
      },
    }),
  },

  anthropic: {
    ...PLAIN,
    refusesBlank: true,
    startsWithUser: true,
    options: 'provider: anthropic, model: claude-sonnet-4-5',
    callId: (_, index, turn) => `toolu_${turn}${index}`,
    refuse: ({ body }) => (unknownKeyword(body, STRICT_KEYWORDS) ? 'tools.0.custom.input_schema: not supported' : undefined),
    passing: {
      raw: ['event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'],
    },
    lasting: {
      script: {
        status: 400,
        body: { type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long: 9 > 8' } },
      },
      message: /the conversation is too long for the model; .* prompt is too long/,
    },
  },

  gemini: {
    ...PLAIN,
    startsWithUser: true,
    options: 'provider: gemini, model: gemini-3-pro',
    callId: (name) => `function-call-${name.length}`,
    /** Signed calls must come back signed; the request is parsed strictly. */
    refuse: ({ body }) => {
      const fault = unknownField(body, GEMINI_FIELDS) ?? unknownKeyword(body, GEMINI_KEYWORDS);
      if (fault !== undefined) return `Invalid JSON payload received. Unknown name "${fault}": Cannot find field.`;
      const unsigned = assistantMessages(body).find(({ tool_calls: [first] = [] }) => first && first.extra_content === undefined);
      return unsigned && 'Function call is missing a thought_signature in functionCall parts.';
    },
    usage: [20, 12, 0, 0],
    ...forms({
      usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 32 },
      finish: { text: 'STOP', calls: 'stop' },
      call: (_, index) => ({
        index: undefined,
        ...(index === 0 ? { extra_content: { google: { thought_signature: 'hidden signature' } } } : {}),
      }),
    }),
    passing: {
      status: 429,
      body: [{ error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'Quota', details: [{ retryDelay: '0.001s' }] } }],
    },
    lasting: {
      script: {
        status: 400,
        body: [{ error: { code: 400, message: 'Unable to process input image.', status: 'INVALID_ARGUMENT' } }],
      },
      message: /answered 400: Unable to process input image\./,
    },
  },

  mistral: {
    ...PLAIN,
    startsWithUser: true,
    options: 'provider: mistral, model: magistral-medium',
    callId: (name, index, turn) => `${name}xxxxxxxx`.slice(0, 7) + turn + index,
    refuse: ({ body }) => {
      const id = (body.messages as readonly Sent[])
        .flatMap(({ tool_calls: calls = [], tool_call_id: id }) => [...calls.map((call) => call.id), id ?? 'abcdefgh1'])
        .find((one) => !/^[A-Za-z0-9]{9}$/.test(String(one)));
      if (id !== undefined) return `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`;
      return unknownField(body, MISTRAL_FIELDS) ?? orderFault(body.messages);
    },
    stream: (answer, request) => [
      {
        choices: [
          {
            index: 0,
            delta: { content: [{ type: 'thinking', thinking: [{ type: 'text', text: answer.reasoning }] }] },
            finish_reason: null,
          },
        ],
      },
      ...streamedAnswer(answer, request, {}),
    ],
    passing: {
      status: 503,
      body: { object: 'error', message: 'Service unavailable.', code: '3505' },
      headers: { 'retry-after-ms': '1' },
    },
    lasting: {
      script: { status: 422, body: { detail: [{ loc: ['body'], msg: 'Image could not be loaded' }] } },
      message: /answered 422: Image could not be loaded/,
    },
  },

  deepseek: {
    ...PLAIN,
    options: 'provider: deepseek, model: deepseek-v4-pro, input: [text]',
    seesImages: false,
    refuse: ({ body }) =>
      withoutReasoning(body.messages, (text) => typeof text !== 'string') &&
      'The `reasoning_content` in the thinking mode must be passed back to the API.',
    usage: [20, 5, 12, 3],
    ...forms({
      reasoning: 'reasoning_content',
      usage: {
        prompt_tokens: 20,
        completion_tokens: 5,
        prompt_cache_hit_tokens: 12,
        prompt_cache_miss_tokens: 8,
        completion_tokens_details: { reasoning_tokens: 3 },
      },
    }),
    passing: {
      raw: [`data: {"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]}\n\ndata: [DONE]\n\n`],
    },
  },

  moonshot: {
    ...PLAIN,
    refusesBlank: true,
    options: 'provider: moonshot, model: kimi-k2.6',
    callId: (name, index) => `functions.${name}:${index}`,
    refuse: ({ body }) => {
      if (withoutReasoning(body.messages, (text) => text === undefined || text === ''))
        return 'thinking is enabled but reasoning_content is missing in assistant tool call message';
      const empty = assistantMessages(body).findIndex(
        ({ content, tool_calls: calls }) => !calls && (content === '' || content === null),
      );
      return empty < 0 ? undefined : `the message at position ${empty} with role 'assistant' must not be empty`;
    },
    missing: ({ body }) => {
      const foreign = assistantMessages(body).find(
        ({ tool_calls: [first] = [] }) => first && !/^functions\.\w+:\d$/.test(first.id),
      );
      return foreign && 'tool call ids have the form functions.name:index';
    },
    ...forms(
      { reasoning: 'reasoning_content', last: { usage: { prompt_tokens: 20, completion_tokens: 5, cached_tokens: 4 } } },
      'last',
    ),
    usage: [20, 5, 4, 0],
    passing: {
      status: 429,
      body: { error: { type: 'engine_overloaded_error', message: 'Busy.' } },
      headers: { 'retry-after-ms': '1' },
    },
  },

  xai: {
    ...PLAIN,
    options: 'provider: xai, model: grok-4.5',
    refuse: ({ body }) => {
      const name = ['presence_penalty', 'frequency_penalty', 'stop'].find((one) => body[one] !== undefined);
      return name && `Model grok-4.5 does not support parameter ${name}.`;
    },
    ...forms({ reasoning: 'reasoning_content', usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 40 } }),
    usage: [20, 20, 0, 0],
    lasting: {
      script: { status: 400, body: { code: 'Client specified an invalid argument', error: 'Unsupported image.' } },
      message: /answered 400: Unsupported image\./,
    },
  },

  dashscope: {
    ...PLAIN,
    options: 'provider: dashscope, model: qwen-plus',
    refuse: ({ body }) =>
      body.stream === true ? undefined : 'parameter.enable_thinking must be set to false for non-streaming calls',
    ...forms({ reasoning: 'reasoning_content' }),
  },

  minimax: {
    ...PLAIN,
    options: 'provider: minimax, model: MiniMax-M2',
    refuse: ({ body }) => (body.reasoning_split === true ? orderFault(body.messages) : 'reasoning_split is not set'),
    stream: (answer, request) =>
      streamedAnswer({ ...answer, text: `<think>\n${answer.reasoning}\n</think>\n\n${answer.text}` }, request),
    whole: (answer, request) =>
      wholeAnswer({ ...answer, text: `<think>\n${answer.reasoning}\n</think>\n\n${answer.text}` }, request),
    passing: {
      raw: ['{"choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit"}}'],
      contentType: 'application/json',
    },
    lasting: {
      script: {
        raw: ['{"choices":null,"base_resp":{"status_code":2013,"status_msg":"invalid image"}}'],
        contentType: 'application/json',
      },
      message: /reported an error: invalid image/,
    },
  },
};

/** Every message of an assistant with calls, and the last one of a turn that had some. */
function withoutReasoning(messages: readonly Sent[], isMissing: (text: unknown) => boolean): Sent | undefined {
  return messages.find((message) => message.role === 'assistant' && message.tool_calls && isMissing(message.reasoning_content));
}
