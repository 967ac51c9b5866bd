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
