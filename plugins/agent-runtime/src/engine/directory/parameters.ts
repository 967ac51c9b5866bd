/** Two names of one parameter, of which `max_tokens` is deprecated. Setting one sets the other. */
const ALIAS: Readonly<Record<string, string>> = { max_tokens: 'max_completion_tokens', max_completion_tokens: 'max_tokens' };

/** Whether an agent's own parameters override one of a caller's. */
export function overridesParam(params: Readonly<Record<string, unknown>>, name: string): boolean {
  return Object.hasOwn(params, name) || Object.hasOwn(params, ALIAS[name] ?? name);
}

/**
 * Merges the parameters of a turn: the agent's override the caller's. If a caller sends both names
 * of one parameter, the newer name wins.
 */
export function mergeParams(
  agent: Readonly<Record<string, unknown>>,
  caller: Readonly<Record<string, unknown>>,
  takesTools: boolean,
): Readonly<Record<string, unknown>> {
  const params: Record<string, unknown> = {};
  for (const name in caller) {
    if (overridesParam(agent, name)) continue;
    if (name === 'max_tokens' && caller.max_completion_tokens !== undefined) continue;
    if (!takesTools && (name === 'tool_choice' || name === 'parallel_tool_calls')) continue;
    params[name] = caller[name];
  }
  return Object.assign(params, agent);
}

/**
 * Returns the `tool_choice` of the steps after the first. A forced tool call is not repeated,
 * because the turn would never end. A list of allowed tools still applies.
 *
 * @returns undefined if no restriction is left.
 */
export function followUpToolChoice(choice: unknown): unknown {
  if (choice === 'auto' || choice === 'none') return choice;
  if (typeof choice !== 'object' || choice === null || !('allowed_tools' in choice)) return undefined;
  const { allowed_tools: allowed } = choice;
  return typeof allowed === 'object' ? { ...choice, allowed_tools: { ...allowed, mode: 'auto' } } : undefined;
}

/**
 * Tokens to reserve for the answer: the token limit of the request, but at most half of the window.
 */
export function answerTokens(params: Readonly<Record<string, unknown>>, contextWindow: number): number {
  const limit = params.max_completion_tokens ?? params.max_tokens;
  return typeof limit === 'number' ? Math.min(limit, contextWindow / 2) : contextWindow / 4;
}

/** Parameters for the form of answers, which a summary does not have. */
const FORM = new Set(['response_format', 'stop', 'logit_bias', 'modalities', 'audio', 'tool_choice', 'parallel_tool_calls']);

/**
 * The agent's parameters for a summary that its caller asks for: all but those for the form of
 * answers (S-61).
 *
 * @param tokens the limit of a turn. A quarter of it is for the summary, the rest for what it is
 *   made of.
 */
export function summaryParams(agent: Readonly<Record<string, unknown>>, tokens: number): Readonly<Record<string, unknown>> {
  const params = Object.fromEntries(Object.entries(agent).filter(([name]) => !FORM.has(name)));
  if (!Number.isFinite(tokens)) return params;
  const own = params.max_completion_tokens ?? params.max_tokens;
  const limit = Math.max(1, Math.floor(tokens / 4));
  params[Object.hasOwn(params, 'max_tokens') ? 'max_tokens' : 'max_completion_tokens'] =
    typeof own === 'number' ? Math.min(own, limit) : limit;
  return params;
}
