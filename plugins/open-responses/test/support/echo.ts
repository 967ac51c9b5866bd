import type { ResponseEcho } from '../../src/events/response-object.js';

/** What a response repeats of a request that said nothing but its input. */
export const ECHO: ResponseEcho = {
  previous_response_id: null,
  instructions: null,
  tools: [],
  tool_choice: 'auto',
  truncation: 'auto',
  parallel_tool_calls: true,
  text: { format: { type: 'text' } },
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  top_logprobs: 0,
  temperature: 1,
  reasoning: { effort: null, summary: null },
  max_output_tokens: null,
  max_tool_calls: null,
  store: true,
  background: false,
  service_tier: 'default',
  metadata: {},
  safety_identifier: null,
  prompt_cache_key: null,
};
