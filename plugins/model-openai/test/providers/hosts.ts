import { forms, orderFault, PLAIN, STRICT_KEYWORDS } from './parts.js';
import { streamedAnswer, wholeAnswer } from './protocol.js';
import { assistantMessages, type Provider, unknownKeyword } from './provider-server.js';

/** The servers of companies that host others' models. */
export const HOSTS: Readonly<Record<string, Provider>> = {
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
    refusesBlank: true,
    startsWithUser: true,
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

  openrouter: {
    ...PLAIN,
    options: 'provider: openrouter, model: anthropic/claude-sonnet-4.5',
    missing: ({ body }, sent) => {
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
    knowsRefusals: true,
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
};
