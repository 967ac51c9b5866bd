import type { TurnFinished } from '@plugboard/kernel/contracts';
import type { Agent } from '../directory/agent.js';
import type { Spent } from './pending-calls.js';

type Limit = NonNullable<TurnFinished['limit']>;

/** The limit that another step would exceed, if any, and the text that says so. */
export function exceededLimit(
  { limits }: Pick<Agent, 'limits'>,
  would: Spent,
): { readonly limit: Limit; readonly text: string } | undefined {
  const reached = (limit: Limit, what: string) => ({
    limit,
    text: `The agent reached its limit of ${what} before it finished.`,
  });
  if (would.steps >= limits.steps) return reached('max_steps', `${limits.steps} model calls`);
  if (would.toolCalls > limits.toolCalls) return reached('max_tool_calls', `${limits.toolCalls} tool calls`);
  if (would.tokens >= limits.tokens) return reached('max_tokens', `${limits.tokens} tokens`);
  return undefined;
}
