import type { Message, Turn } from '@plugboard/kernel';
import { answerTokens, mergeParams } from '../../engine/directory/parameters.js';
import { estimateTokens, tokensOf } from '../../engine/messages/message-size.js';
import type { HistoryBudget } from '../../engine/messages/newest-turns.js';
import type { TurnContext } from '../../engine/turn/conversation.js';
import { historyBudget } from '../history/history-view.js';

/** Makes the turn that interceptors and the agent loop receive. */
export function makeTurn({ task, agent, request, signal, toolbox }: TurnContext, messages: readonly Message[]): Turn {
  const takesTools = agent.clientTools === 'passthrough';
  return {
    id: task.turnId,
    agent: agent.name,
    principal: request.principal,
    session: request.session && `api:${request.session.key}`,
    user: request.user,
    transport: request.transport,
    system: messages.some(({ role }) => role === 'system') ? undefined : agent.system,
    messages,
    tools: toolbox.declarations,
    clientTools: takesTools ? request.clientTools : [],
    params: mergeParams(agent.params, request.params, takesTools),
    incremental: request.incremental,
    requestId: request.requestId,
    metadata: request.metadata,
    signal,
  };
}

/**
 * What the model may receive of the earlier messages, beside the answer and everything else in the
 * request.
 *
 * @param messages the new messages, after the system messages of the request.
 */
export function budgetFor({ agent, request, toolbox }: TurnContext, messages: readonly Message[]): HistoryBudget {
  const tools = agent.clientTools === 'passthrough' ? [...toolbox.declarations, ...request.clientTools] : toolbox.declarations;
  const answer = answerTokens(mergeParams(agent.params, request.params, false), agent.contextWindow);
  const prompt = messages[0]?.role === 'system' ? 0 : estimateTokens(agent.system ?? '');
  const left = agent.contextWindow - answer - prompt - tokensOf(tools);
  return historyBudget(
    agent.history,
    messages.reduce((tokens, message) => tokens - tokensOf(message), left),
  );
}
