import { schema } from '@plugboard/openai-protocol';

const { anyObject, decimal, flag, integer, maybe, metadata, name, object, shape, tagged, text, word, wordOr } = schema;

/**
 * The schema of a request body. Unknown fields may have any value.
 *
 * The fields are in the order in which the reference reports errors. `model` is missing: it is
 * checked first, with its own message. Top-level nulls are removed before the check. `title` says
 * what was expected where the type alone would say too little.
 */

const textPart = shape({ text });
const userPart = tagged('type', {
  text: textPart,
  image_url: shape({ image_url: object({ url: text, detail: maybe(text) }, ['url']) }),
  input_audio: shape({ input_audio: object({ data: text, format: text }, ['data', 'format']) }),
  file: shape({ file: object({ filename: maybe(text), file_data: maybe(text), file_id: maybe(text) }) }),
  video_url: shape({ video_url: object({ url: text }, ['url']) }),
});
const assistantPart = tagged('type', { text: textPart, refusal: shape({ refusal: text }) });
const onlyText = tagged('type', { text: textPart });

/** Missing content is checked later: the reference reports it last. */
const contentOf = (part: schema.RequestSchema): schema.RequestSchema =>
  maybe({ title: 'one of a string or array of objects', type: ['string', 'array'], items: part });

const toolCall = tagged('type', {
  function: shape({ id: text, function: object({ name: text, arguments: text }, ['name', 'arguments']) }),
  custom: shape({ id: text, custom: object({ name: text, input: text }, ['name', 'input']) }),
});

const instructions = shape({ content: contentOf(onlyText), name: maybe(text) }, []);

const message = tagged('role', {
  system: instructions,
  assistant: shape(
    {
      content: contentOf(assistantPart),
      name: maybe(text),
      refusal: maybe(text),
      tool_calls: maybe({ title: 'an array of objects', type: 'array', items: toolCall }),
      function_call: maybe(object({ name: text, arguments: text }, ['name', 'arguments'])),
      audio: maybe(object({ id: text }, ['id'])),
    },
    [],
  ),
  user: shape({ content: contentOf(userPart), name: maybe(text) }, []),
  function: shape({ content: maybe(text), name: text }, ['name']),
  tool: shape({ content: contentOf(onlyText), tool_call_id: text }, ['tool_call_id']),
  developer: instructions,
});

const named = object({ name: text }, ['name']);
const functionDeclaration = object({ name, description: maybe(text), parameters: maybe(anyObject), strict: maybe(flag) }, [
  'name',
]);

const responseFormat = tagged('type', {
  json_object: shape({}),
  json_schema: shape({
    json_schema: object({ name, description: maybe(text), schema: maybe(anyObject), strict: maybe(flag) }, ['name']),
  }),
  text: shape({}),
});

const INT64 = 2 ** 63;
const INT32 = 2 ** 31 - 1;

export const requestSchema: schema.ObjectSchema = object(
  {
    messages: { title: 'an array of objects', type: 'array', minItems: 1, maxItems: 2048, items: message },
    functions: { title: 'an array of objects', type: 'array', minItems: 1, maxItems: 128, items: functionDeclaration },
    tools: {
      title: 'an array of objects',
      type: 'array',
      maxItems: 128,
      items: tagged('type', {
        function: shape({ function: functionDeclaration }),
        custom: shape({ custom: object({ name }, ['name']) }),
      }),
    },
    parallel_tool_calls: flag,
    max_completion_tokens: integer(1, INT32),
    max_tokens: integer(1, INT32),
    n: integer(1, 128),
    temperature: decimal(0, 2),
    top_p: decimal(0, 1),
    presence_penalty: decimal(-2, 2),
    frequency_penalty: decimal(-2, 2),
    logprobs: flag,
    top_logprobs: integer(0, 20),
    user: text,
    session_id: text,
    seed: integer(-INT64, INT64),
    safety_identifier: { type: 'string', maxLength: 64 },
    prompt_cache_key: text,
    prompt_cache_retention: text,
    service_tier: word('auto', 'default', 'flex', 'scale', 'priority', 'fast'),
    stream: flag,
    store: flag,
    metadata,
    verbosity: word('low', 'medium', 'high'),
    stream_options: object({ include_usage: maybe(flag), include_obfuscation: maybe(flag) }),
    stop: {
      title: 'one of a string or array of strings',
      type: ['string', 'array'],
      maxItems: 4,
      items: text,
    },
    logit_bias: { type: 'object', additionalProperties: decimal(-100, 100) },
    response_format: responseFormat,
    tool_choice: wordOr(
      { enum: ['none', 'auto', 'required'] },
      tagged('type', {
        function: shape({ function: named }),
        custom: shape({ custom: named }),
        allowed_tools: shape({
          allowed_tools: object({ mode: word('auto', 'required'), tools: { type: 'array', items: anyObject } }, [
            'mode',
            'tools',
          ]),
        }),
      }),
    ),
    function_call: wordOr({ enum: ['none', 'auto'] }, named),
    reasoning_effort: word('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
    modalities: { title: 'an array of strings', type: 'array', items: word('text', 'audio') },
    audio: anyObject,
    prediction: anyObject,
    web_search_options: anyObject,
    prompt_cache_options: anyObject,
    moderation: anyObject,
  },
  ['messages'],
);
