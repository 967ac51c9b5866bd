import { schema } from '@plugboard/openai-protocol';
import { toolsSchema } from './tool-schema.js';

const { anyObject, decimal, flag, integer, maybe, metadata, name, object, shape, tagged, text, word, wordOr } = schema;

const INT32 = 2 ** 31 - 1;

const toolReference = object({ type: text, name: text, namespace: maybe(text) });

/**
 * What the body of `POST /v1/responses`, and a `response.create` message, may look like. Unknown
 * fields may be anything. `model` is checked apart, and the elements of `input` when they are read.
 * Nulls at the top level are removed before the check.
 */
export const requestSchema: schema.ObjectSchema = object({
  input: { title: 'one of a string or array of objects', type: ['string', 'array'], items: anyObject },
  instructions: text,
  previous_response_id: text,
  conversation: wordOr({}, object({ id: text }, ['id'])),
  tools: toolsSchema,
  tool_choice: wordOr(
    { enum: ['none', 'auto', 'required'] },
    tagged('type', {
      function: shape({ name: text, namespace: maybe(text) }, ['name']),
      custom: shape({ name: text, namespace: maybe(text) }, ['name']),
      allowed_tools: shape({
        mode: word('none', 'auto', 'required'),
        tools: { title: 'an array of objects', type: 'array', items: toolReference },
      }),
    }),
  ),
  parallel_tool_calls: flag,
  max_output_tokens: integer(1, INT32),
  max_tool_calls: integer(1, INT32),
  temperature: decimal(0, 2),
  top_p: decimal(0, 1),
  presence_penalty: decimal(-2, 2),
  frequency_penalty: decimal(-2, 2),
  top_logprobs: integer(0, 20),
  text: object({
    format: maybe(
      tagged('type', {
        text: shape({}),
        json_object: shape({}),
        json_schema: shape({ name, description: maybe(text), schema: maybe(anyObject), strict: maybe(flag) }, ['name']),
      }),
    ),
    verbosity: maybe(text),
  }),
  reasoning: object({ effort: maybe(text), summary: maybe(text), generate_summary: maybe(text) }),
  truncation: word('auto', 'disabled'),
  include: { title: 'an array of strings', type: 'array', items: text },
  metadata,
  user: text,
  safety_identifier: { type: 'string', maxLength: 64 },
  prompt_cache_key: text,
  service_tier: text,
  store: flag,
  stream: flag,
  stream_options: anyObject,
  background: flag,
  generate: flag,
  stream_id: { type: 'string', minLength: 1, maxLength: 64 },
});
