import type { Message, ModelConnector, ModelRequest, Turn } from '@plugboard/kernel';
import { type Account, type ToolDeclaration, textOf } from '@plugboard/kernel/contracts';
import type { Agent } from '../directory/agent.js';
import { answerTokens, followUpToolChoice } from '../directory/parameters.js';
import { withOwnExtras } from '../messages/extra.js';
import { withoutRefusedMedia } from '../messages/media.js';
import { tokensOf } from '../messages/message-size.js';
import { trimConversation } from '../messages/newest-turns.js';
import type { TurnTools } from '../tools/turn-tools.js';
import { messagesFor } from './model-messages.js';

/** What the request of a step is made of. */
export interface Step {
  readonly agent: Agent;
  readonly turn: Turn;
  readonly tools: TurnTools;
  /** The opaque id of the turn's session: its key may be secret. */
  readonly conversation: string | undefined;
  /** From 1. */
  readonly number: number;
  /** With the prompt. */
  readonly messages: readonly Message[];
  /** The memory of the turn. */
  readonly account: Account;
  /** Headers that tracing adds. */
  readonly headers: Record<string, string>;
}

/** The request of a step to one connection, with what that connection takes. */
export function modelRequest(connector: ModelConnector, name: string, step: Step): ModelRequest {
  const { agent, turn, tools, conversation, account, headers } = step;
  const { declarations, streamed } = tools;
  const fitting = fittingMessages(connector, agent, turn, step.messages, declarations);
  return {
    messages: withOwnExtras(withoutRefusedMedia(messagesFor(connector, fitting), connector), name, declarations),
    tools: declarations,
    params: supportedParams(connector, turn, step.number),
    incremental: turn.incremental,
    streamedTools: streamed,
    requestId: turn.requestId,
    session: conversation,
    user: turn.user,
    account,
    headers,
  };
}

/**
 * Adds the prompt. A system message that an interceptor put first becomes part of it: some model
 * servers take only one.
 */
export function withPrompt({ system, messages }: Turn, agent: Agent): readonly Message[] {
  if (system === undefined) return messages;
  const [first] = messages;
  if (first?.role !== 'system') {
    const prompt = agent.prompt?.content === system ? agent.prompt : { role: 'system' as const, content: system };
    return [prompt, ...messages];
  }
  return [{ ...first, content: `${system}\n\n${textOf(first.content)}` }, ...messages.slice(1)];
}

function supportedParams(connector: ModelConnector, { params }: Turn, step: number): Readonly<Record<string, unknown>> {
  const supported: Record<string, unknown> = {};
  for (const name in params) {
    if (!connector.supportsParam(name)) continue;
    const value = step > 1 && name === 'tool_choice' ? followUpToolChoice(params[name]) : params[name];
    if (value !== undefined) supported[name] = value;
  }
  return supported;
}

/**
 * Fits the messages to another connection: the history of a session fits the first one only, and
 * others may have smaller windows.
 */
function fittingMessages(
  { contextWindow }: ModelConnector,
  agent: Agent,
  turn: Turn,
  messages: readonly Message[],
  tools: readonly ToolDeclaration[],
): readonly Message[] {
  if (contextWindow >= agent.contextWindow || !mayTrim(turn, agent)) return messages;
  return trimConversation(messages, contextWindow - answerTokens(turn.params, contextWindow) - tokensOf(tools));
}

/** Whether the oldest turns may be left out: of a session, unless its agent says otherwise. */
export function mayTrim({ session }: Turn, agent: Agent): boolean {
  return session !== undefined && agent.history.policy !== 'error';
}
