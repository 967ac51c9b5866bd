import { streamedAnswer, wholeAnswer } from './protocol.js';
import { assistantMessages, type Provider, type Sent, unknownField, unknownKeyword } from './provider-server.js';

/** The form of the protocol's errors, with a wait that the tests can afford. */
const busy = { status: 429, body: { error: { message: 'Slow down.' } }, headers: { 'retry-after-ms': '1' } };

const PLAIN: Pick<Provider, 'stream' | 'whole' | 'passing' | 'lasting' | 'usage'> = {
  stream: streamedAnswer,
  whole: wholeAnswer,
  passing: busy,
  lasting: { script: { status: 400, body: { error: { message: 'Bad image.' } } }, message: /answered 400: Bad image\./ },
  usage: [20, 5, 0, 0],
};

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
const STRICT_KEYWORDS = [
  ...['type', 'title', 'description', 'enum', 'const', 'items', 'properties', 'required', 'anyOf', 'additionalProperties'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'minItems', 'maxItems', 'minLength'],
];

/** Every message of an assistant with calls, and the last one of a turn that had some. */
function withoutReasoning(messages: readonly Sent[], isMissing: (text: unknown) => boolean): Sent | undefined {
  return messages.find((message) => message.role === 'assistant' && message.tool_calls && isMissing(message.reasoning_content));
}

/** Roles that do not alternate. */
function orderFault(messages: readonly Sent[]): string | undefined {
  for (const [i, { role }] of messages.entries()) {
    const before = messages[i - 1]?.role;
    if (role === before && role !== 'tool') return `Conversation roles must alternate: ${role} after ${role}`;
    if (role === 'user' && before === 'tool') return "Unexpected role 'user' after role 'tool'";
    if (role === 'system' && i > 0) return 'system must be the first message';
  }
  return undefined;
}

export const PROVIDERS: Readonly<Record<string, Provider>> = {
  openai: {
    ...PLAIN,
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
    options: 'provider: moonshot, model: kimi-k2.6',
    callId: (name, index) => `functions.${name}:${index}`,
    refuse: ({ body }) => {
      if (withoutReasoning(body.messages, (text) => text === undefined || text === ''))
        return 'thinking is enabled but reasoning_content is missing in assistant tool call message';
      const empty = assistantMessages(body).findIndex(
        ({ content, tool_calls: calls }) => !calls && (content === '' || content === null),
      );
      if (empty >= 0) return `the message at position ${empty} with role 'assistant' must not be empty`;
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

  groq: {
    ...PLAIN,
    options: 'provider: groq, model: openai/gpt-oss-120b',
    refuse: ({ body }) => {
      const field = body.messages
        .flatMap((message) => Object.keys(message))
        .find((name) => /^(name|reasoning(_content)?)$/.test(name));
      return field && `'messages.1' : property '${field}' is unsupported`;
    },
    usage: [20, 5, 0, 0],
    stream: (answer, request) => {
      const chunks = streamedAnswer(answer, request, { reasoning: 'reasoning' });
      return [...chunks.slice(0, -1), { choices: [], x_groq: { id: 'req', usage: { prompt_tokens: 20, completion_tokens: 5 } } }];
    },
    whole: (answer, request) => wholeAnswer(answer, request, { reasoning: 'reasoning' }),
    passing: { status: 498, body: { error: { message: 'Capacity exceeded.' } }, headers: { 'retry-after-ms': '1' } },
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

  cerebras: {
    ...PLAIN,
    options: 'provider: cerebras, model: zai-glm-4.6',
    refuse: ({ body }) => {
      const field = assistantMessages(body)
        .flatMap((message) => Object.keys(message))
        .find((name) => name.startsWith('reasoning'));
      if (field) return `messages.2.assistant.${field}: property is unsupported`;
      return unknownKeyword(body, STRICT_KEYWORDS);
    },
    ...forms({ reasoning: 'reasoning' }),
    lasting: {
      script: {
        status: 400,
        body: { message: 'wrong image', type: 'invalid_request_error', param: 'x', code: 'wrong_api_format' },
      },
      message: /answered 400: wrong image/,
    },
  },

  bedrock: {
    ...PLAIN,
    options: 'provider: bedrock, model: openai.gpt-oss-120b-1:0',
    callId: (name, index, turn) => `tooluse_${name}${index}${turn}`,
    refuse: ({ body }) => {
      if (assistantMessages(body).some(({ content }) => content === null)) return 'content must not be null';
      return orderFault(body.messages) ?? unknownKeyword(body, STRICT_KEYWORDS);
    },
    ...forms({ finish: { text: 'end_turn', calls: 'tool_use' } }),
    // The only calls have the indexes 1 and 2.
    stream: (answer, request) =>
      streamedAnswer(answer, request, {
        finish: { text: 'end_turn', calls: 'tool_use' },
        call: (_, index) => ({ index: index + 1 }),
      }),
    passing: { status: 503, body: { message: 'ServiceUnavailableException' }, headers: { 'retry-after-ms': '1' } },
  },

  ollama: {
    ...PLAIN,
    options: 'provider: ollama, model: qwen3',
    refuse: ({ body }) =>
      body.messages.some(({ content, tool_calls: calls }) => content === null && !calls)
        ? 'invalid message content type: <nil>'
        : undefined,
    // Every call has the index 0.
    ...forms({ reasoning: 'reasoning', call: () => ({ index: 0 }) }),
    lasting: {
      script: { status: 404, body: { error: { message: "model 'qwen3' not found", type: 'not_found_error' } } },
      message: /answered 404: model 'qwen3' not found/,
    },
  },

  'llama.cpp': {
    ...PLAIN,
    options: 'provider: llama.cpp, model: gemma',
    refuse: ({ body }) => orderFault(body.messages) ?? (unknownKeyword(body, STRICT_KEYWORDS) && 'JSON schema conversion failed'),
    stream: (answer, request) => {
      const chunks = streamedAnswer(answer, request, { reasoning: 'reasoning_content' });
      return [...chunks.slice(0, -1), { choices: [], timings: { prompt_n: 14, cache_n: 6, predicted_n: 5 } }];
    },
    whole: (answer, request) => ({
      ...wholeAnswer(answer, request, { reasoning: 'reasoning_content' }),
      usage: undefined,
      timings: { prompt_n: 14, cache_n: 6, predicted_n: 5 },
    }),
    usage: [20, 5, 6, 0],
    passing: {
      status: 503,
      body: { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
      headers: { 'retry-after-ms': '1' },
    },
    lasting: {
      script: {
        raw: [
          'error: {"code":400,"message":"the request exceeds the available context size","type":"invalid_request_error"}\n\ndata: [DONE]\n\n',
        ],
      },
      message: /the conversation is too long for the model/,
    },
  },

  vllm: {
    ...PLAIN,
    options: 'provider: vllm, model: qwen3',
    callId: (name, index, turn) => `chatcmpl-tool-${name}${index}${turn}`,
    whole: (answer, request) => wholeAnswer(answer, request, { reasoning: 'reasoning' }),
    // The name comes with every fragment, and the whole arguments again with the last one.
    stream: (answer, request) => {
      const chunks = streamedAnswer({ ...answer, calls: [] }, request, { reasoning: 'reasoning' });
      const fragments = answer.calls.flatMap(({ id, name, args }, index) =>
        ['{', JSON.stringify(args)].map((text) => ({
          choices: [
            {
              index: 0,
              delta: { tool_calls: [{ index, id, type: 'function', function: { name, arguments: text } }] },
              finish_reason: null,
            },
          ],
        })),
      );
      return [...chunks.slice(0, -2), ...fragments, ...chunks.slice(-2)];
    },
    passing: { raw: ['data: {"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}\n\ndata: [DONE]\n\n'] },
    lasting: {
      script: {
        raw: ['data: {"object":"error","message":"Bad image.","type":"BadRequestError","code":400}\n\ndata: [DONE]\n\n'],
      },
      message: /reported an error: Bad image\./,
    },
  },

  openrouter: {
    ...PLAIN,
    options: 'provider: openrouter, model: anthropic/claude-sonnet-4.5',
    refuse: ({ body }, sent) => {
      const calling = assistantMessages(body).filter(({ tool_calls: calls }) => calls);
      const isSigned = calling.every(({ reasoning_details: blocks }) =>
        String(JSON.stringify(blocks)).includes('hidden signature'),
      );
      return sent.length > 0 && !isSigned ? 'Expected thinking blocks with their signature' : undefined;
    },
    ...forms({ last: { native_finish_reason: 'STOP' } }),
    stream: (answer, request) => {
      const frames = streamedAnswer(answer, request, { last: { native_finish_reason: null } }).map(
        (chunk) => `data: ${JSON.stringify(chunk)}\n\n`,
      );
      const details = [
        { type: 'reasoning.text', text: answer.reasoning.slice(0, 4), index: 0, signature: null },
        { type: 'reasoning.text', text: answer.reasoning.slice(4), index: 0, signature: 'hidden signature' },
      ].map((block) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { reasoning_details: [block] } }] })}\n\n`);
      return `: OPENROUTER PROCESSING\n\n${details.join(': OPENROUTER PROCESSING\n\n')}${frames.join('')}data: [DONE]\n\n`;
    },
    whole: (answer, request) => {
      const body = wholeAnswer(answer, request) as { choices: [{ message: object }] };
      const [choice] = body.choices;
      const details = [{ type: 'reasoning.text', text: answer.reasoning, index: 0, signature: 'hidden signature' }];
      return `\n\n   ${JSON.stringify({ ...body, choices: [{ ...choice, message: { ...choice.message, reasoning_details: details } }] })}`;
    },
    passing: {
      raw: [
        'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"Network connection lost."}}]}\n\n',
      ],
    },
    lasting: {
      script: {
        status: 400,
        body: {
          error: {
            message: 'Provider returned error',
            code: 400,
            metadata: { raw: '{"error":{"message":"Bad image."}}', provider_name: 'Anthropic' },
          },
        },
      },
      message: /answered 400: Anthropic: Bad image\./,
    },
  },

  azure: {
    ...PLAIN,
    options: 'provider: azure, model: gpt-4o',
    refuse: ({ headers }) => (headers['api-key'] === undefined ? 'Access denied due to missing api-key' : undefined),
    stream: (answer, request) => [
      { choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
      ...streamedAnswer(answer, request),
    ],
    lasting: {
      script: { status: 400, body: { error: { message: 'The response was filtered.', code: 'content_filter', status: 400 } } },
      message: /answered 400: The response was filtered\./,
    },
  },

  'workers-ai': {
    ...PLAIN,
    options: 'provider: workers-ai, model: "@cf/meta/llama"',
    refuse: ({ body }) =>
      assistantMessages(body).some(({ content }) => content === null) ? "Type mismatch of '/messages/1/content'" : undefined,
    // Arguments as objects, and streams as JSON.
    ...forms({ call: ({ name, args }) => ({ id: undefined, function: { name, arguments: args } }) }),
    contentType: 'application/json',
    lasting: {
      script: {
        raw: ['{"success":false,"errors":[{"code":5006,"message":"Bad image."}],"result":null}'],
        contentType: 'application/json',
      },
      message: /reported an error: Bad image\./,
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

/**
 * Both forms of an answer that differ from the protocol in the same things.
 *
 * @param usageIn `last`: the usage is in the last choice only.
 */
function forms(form: Parameters<typeof streamedAnswer>[2], usageIn?: 'last'): Pick<Provider, 'stream' | 'whole'> {
  return {
    stream: (answer, request) => {
      const chunks = streamedAnswer(answer, request, form);
      return usageIn === 'last' ? chunks.slice(0, -1) : chunks;
    },
    whole: (answer, request) => {
      const body = wholeAnswer(answer, request, form);
      return usageIn === 'last' ? { ...body, usage: undefined } : body;
    },
  };
}
