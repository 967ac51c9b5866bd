import type { Message, Turn } from '@plugboard/kernel';
import type { Usage } from '@plugboard/kernel/contracts';
import { answerTokens, mergeParams } from '../../engine/directory/parameters.js';
import { estimateTokens, tokensOf } from '../../engine/messages/message-size.js';
import type { TurnContext } from '../../engine/turn/turn-context.js';
import { type HistoryBudget, historyBudget } from '../history/history-view.js';
import type { PendingCalls } from '../pending/pending-calls.js';

/** A turn that has begun. */
export interface BegunTurn {
  readonly turn: Turn;
  /** Tokens that were used before its first model call. */
  readonly usage: Usage | undefined;
  /** Its calls that outlive it, and those of earlier turns. */
  readonly pending: PendingCalls;
}

/**
 * Where the conversation of a turn comes from, and what keeps its answer. Called in this order:
 * `load`, `begin`, then `commit` or `abandon`.
 */
export interface TurnConversation {
  /** Whether `commit` stores anything besides an idempotency record. */
  readonly isStored: boolean;
  /** Loads the conversation and makes the turn. @throws TurnError */
  load(): Promise<Turn>;
  /** Prepares the first model call. @throws TurnError */
  begin(turn: Turn): Promise<BegunTurn>;
  /**
   * Stores the answer, and the idempotency record of the turn with it.
   * @throws TurnError if the store fails.
   */
  commit(answer: readonly Message[]): Promise<void>;
  /** Ends a turn that failed, without a trace in the conversation. Never rejects. */
  abandon(): Promise<void>;
}

/** Makes the turn that interceptors and the agent loop receive. */
export async function makeTurn({ agent, request, signal, deps }: TurnContext, messages: readonly Message[]): Promise<Turn> {
  const { declarations } = await deps.toolboxes.of(agent.tools, signal);
  const takesTools = agent.clientTools === 'passthrough';
  return {
    id: `turn_${deps.ids.base62(20)}`,
    agent: agent.name,
    principal: request.principal,
    session: request.session && `api:${request.session.key}`,
    user: request.user,
    transport: request.transport,
    system: messages.some(({ role }) => role === 'system') ? undefined : agent.system,
    messages,
    tools: declarations,
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
export async function budgetFor(context: TurnContext, messages: readonly Message[]): Promise<HistoryBudget> {
  const { agent, request, signal, deps } = context;
  const toolbox = await deps.toolboxes.of(agent.tools, signal);
  const tools = agent.clientTools === 'passthrough' ? [...toolbox.declarations, ...request.clientTools] : toolbox.declarations;
  const answer = answerTokens(mergeParams(agent.params, request.params, false), agent.contextWindow);
  const prompt = messages[0]?.role === 'system' ? 0 : estimateTokens(agent.system ?? '');
  const left = agent.contextWindow - answer - prompt - tokensOf(tools);
  return historyBudget(
    agent.history,
    messages.reduce((tokens, message) => tokens - tokensOf(message), left),
  );
}
