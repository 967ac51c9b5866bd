/**
 * The sampling parameters that an agent's `params` and a caller's request may set, as chat
 * completions name them. A model connector says which of them its model takes (`supportsParam`).
 *
 * @experimental
 */
export const SAMPLING_PARAMETERS: readonly string[] = [
  'temperature',
  'top_p',
  'max_completion_tokens',
  'max_tokens',
  'frequency_penalty',
  'presence_penalty',
  'stop',
  'seed',
  'response_format',
  'reasoning_effort',
  'verbosity',
  'prompt_cache_key',
];
