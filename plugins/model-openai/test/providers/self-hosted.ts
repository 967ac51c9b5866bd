import { forms, orderFault, PLAIN, STRICT_KEYWORDS } from './parts.js';
import { streamedAnswer, wholeAnswer } from './protocol.js';
import { type Provider, unknownKeyword } from './provider-server.js';

/** Servers that people run themselves. */
export const SELF_HOSTED: Readonly<Record<string, Provider>> = {
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
    startsWithUser: true,
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
};
