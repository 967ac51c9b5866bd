/** Two names of one parameter, of which `max_tokens` is deprecated. Setting one sets the other. */
const ALIAS: Readonly<Record<string, string>> = { max_tokens: 'max_completion_tokens', max_completion_tokens: 'max_tokens' };

/** Whether an agent's own parameters override one of a caller's. */
export function sets(params: Readonly<Record<string, unknown>>, name: string): boolean {
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
    if (sets(agent, name)) continue;
    if (name === 'max_tokens' && caller.max_completion_tokens !== undefined) continue;
    if (!takesTools && (name === 'tool_choice' || name === 'parallel_tool_calls')) continue;
    params[name] = caller[name];
  }
  return Object.assign(params, agent);
}

/** Whether a parameter forces the model to call a tool. */
export function forcesTool(name: string, value: unknown): boolean {
  return name === 'tool_choice' && value !== 'auto' && value !== 'none';
}
