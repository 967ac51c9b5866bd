/** Two names of one parameter: the older one is deprecated in the protocol. Who sets the one has set the other. */
const TWIN: Readonly<Record<string, string>> = { max_tokens: 'max_completion_tokens', max_completion_tokens: 'max_tokens' };

/** Whether an agent's own parameters decide about one of a caller's. */
export function sets(params: Readonly<Record<string, unknown>>, name: string): boolean {
  return Object.hasOwn(params, name) || Object.hasOwn(params, TWIN[name] ?? name);
}

/** The parameters of a turn: the caller's, and the agent's own over them. Of a caller's two names for one parameter the newer counts. */
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

/** Whether a parameter leaves the model no choice but to call a tool. */
export function forcesTool(name: string, value: unknown): boolean {
  return name === 'tool_choice' && value !== 'auto' && value !== 'none';
}
