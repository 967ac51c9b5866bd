import { Ajv, type SchemaObject } from 'ajv';

/**
 * The reference's CreateChatCompletionResponse and CreateChatCompletionStreamResponse, written down
 * by hand from its OpenAPI description, with nothing else allowed.
 */

const count: SchemaObject = { type: 'integer', minimum: 0 };

function object(properties: Record<string, SchemaObject>, required: readonly string[] = Object.keys(properties)): SchemaObject {
  return { type: 'object', properties, required, additionalProperties: false };
}

const usage = object(
  {
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: object({ cached_tokens: count, cache_write_tokens: count, audio_tokens: count }, []),
    completion_tokens_details: object(
      { reasoning_tokens: count, audio_tokens: count, accepted_prediction_tokens: count, rejected_prediction_tokens: count },
      [],
    ),
  },
  ['prompt_tokens', 'completion_tokens', 'total_tokens'],
);

const finishReason: SchemaObject = { enum: ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'] };
const head = (name: string) => ({
  id: { type: 'string', pattern: '^chatcmpl-[0-9A-Za-z]{29}$' },
  object: { const: name },
  created: { type: 'integer' },
  model: { type: 'string' },
  service_tier: { enum: ['auto', 'default', 'flex', 'scale', 'priority'] },
  system_fingerprint: { type: 'string', minLength: 1 },
});
const callOf = (required: readonly string[], properties: Record<string, SchemaObject> = {}) =>
  object(
    {
      ...properties,
      id: { type: 'string' },
      type: { const: 'function' },
      function: object({ name: { type: 'string' }, arguments: { type: 'string' } }, required.includes('id') ? undefined : []),
    },
    required,
  );

const completionSchema = object(
  {
    ...head('chat.completion'),
    choices: {
      type: 'array',
      minItems: 1,
      items: object({
        index: count,
        message: object(
          {
            role: { const: 'assistant' },
            content: { type: 'string', nullable: true },
            refusal: { type: 'string', nullable: true },
            annotations: { type: 'array', items: { type: 'object' } },
            tool_calls: { type: 'array', minItems: 1, items: callOf(['id', 'type', 'function']) },
          },
          ['role', 'content', 'refusal'],
        ),
        logprobs: { type: 'object', nullable: true },
        finish_reason: finishReason,
      }),
    },
    usage,
  },
  ['id', 'object', 'created', 'model', 'choices'],
);

const chunkSchema = object(
  {
    ...head('chat.completion.chunk'),
    choices: {
      type: 'array',
      items: object(
        {
          index: count,
          delta: object(
            {
              role: { enum: ['developer', 'system', 'user', 'assistant', 'tool'] },
              content: { type: 'string', nullable: true },
              refusal: { type: 'string', nullable: true },
              tool_calls: { type: 'array', items: callOf(['index'], { index: count }) },
            },
            [],
          ),
          logprobs: { type: 'object', nullable: true },
          finish_reason: { enum: [...finishReason.enum, null] },
        },
        ['index', 'delta', 'finish_reason'],
      ),
    },
    usage: { ...usage, nullable: true },
  },
  ['id', 'object', 'created', 'model', 'choices'],
);

const ajv = new Ajv({ allErrors: true });
export const isCompletion = ajv.compile(completionSchema);
export const isChunk = ajv.compile(chunkSchema);
