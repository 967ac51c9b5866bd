import type { Clock, IdSource, Message, Principal } from '@plugboard/kernel';
import { type AgentRuntime, CONVERSATION_PREFIX, conversationId, type Failure, type Target } from '@plugboard/kernel/contracts';
import { conversationSessionKey, parseSessionKey, resolveAgent } from '@plugboard/openai-protocol';
import { type InputMessages, messagesOf, nameItems } from '../items/input-messages.js';
import { connectionForTextOnly } from '../items/input-parts.js';
import { clientToolsOf } from '../request/client-tools.js';
import { echoOf } from '../request/echo.js';
import { parametersOf } from '../request/parameters.js';
import type { ResponseRequest } from '../request/request.js';
import { joinHistory } from './join-history.js';
import { previousNotFound } from './not-found.js';
import { resolveReferences } from './resolve-references.js';
import type { Base, Plan, ResponseCaller } from './response-plan.js';
import type { StoredResponses } from './stored-response.js';

/** The protocol's own figure for messages. */
const MOST_ITEMS = 2048;
export const ID_LENGTH = 24;

interface ResponsePlannerOptions {
  runtime(): AgentRuntime;
  readonly stored: StoredResponses;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/**
 * Checks requests and finds what they continue: agent, tools, parameters, input, history. Runs and
 * stores nothing.
 */
export class ResponsePlanner {
  readonly #options: ResponsePlannerOptions;

  constructor(options: ResponsePlannerOptions) {
    this.#options = options;
  }

  /** @throws ProtocolError for a request that cannot be served. @throws TurnError */
  async plan(request: ResponseRequest, caller: ResponseCaller): Promise<Plan> {
    const { principal, connection } = caller;
    const target = resolveAgent(this.#options.runtime(), request.model ?? caller.defaultModel ?? '', 'model', principal);
    const clientTools = clientToolsOf(request, target);
    const { params, ignored } = parametersOf(request, target, clientTools.length > 0);
    const input = await this.inputOf(request, target, principal);
    const lane = request.stream_id ?? '';
    const implied =
      connection?.isConversation && request.conversation === undefined ? connection.memory.last(lane)?.id : undefined;
    const previous = request.previous_response_id ?? implied;
    const stored = request.store !== false && request.generate !== false;
    const base = await this.#baseOf(request, previous, stored, target, caller);
    const user = parseSessionKey(request.user, 'user');
    const { system, messages } = split(input, request.instructions);
    const joined: InputMessages =
      base.kind === 'stateless' || base.kind === 'chain'
        ? { messages: joinHistory(base.history, messages), origins: shifted(base.history.length, messages.origins) }
        : messages;
    const named =
      base.kind === 'session' ? conversationId({ project: principal.project, agent: target.name, key: base.key }) : undefined;
    return {
      request,
      caller,
      base,
      user,
      stored,
      lane,
      ignored,
      head: {
        id: `resp_${this.#options.ids.base62(ID_LENGTH)}`,
        createdAt: this.now(),
        model: request.model ?? caller.defaultModel ?? target.name,
        echo: echoOf(request, { previous, conversation: named, stored }),
      },
      turn: {
        target,
        principal,
        messages: [...system, ...joined.messages],
        clientTools,
        params,
        maxToolCalls: request.max_tool_calls,
        wholeHistory: request.truncation === 'disabled',
        incremental: caller.incremental,
        requestId: caller.requestId,
        metadata: request.metadata ?? {},
      },
      showsReasoning: request.reasoning?.summary != null && target.toolVisibility === 'full',
      failure: (failure) => restated(failure, { ...joined, origins: shifted(system.length, joined.origins) }),
    };
  }

  /** Unix time, seconds. */
  now(): number {
    return Math.floor(this.#options.clock.now() / 1000);
  }

  /** The messages of a request's `input`. @throws ProtocolError 400. @throws TurnError */
  async inputOf(request: ResponseRequest, target: Target, principal: Principal): Promise<InputMessages> {
    const { input = [] } = request;
    if (typeof input === 'string') return { messages: [{ role: 'user', content: input }], origins: [0] };
    const items = await resolveReferences(input, this.#options.stored, principal);
    const rules = { param: 'input', maxItems: MOST_ITEMS, textOnly: connectionForTextOnly(target), purpose: 'turn' } as const;
    return messagesOf(items, rules);
  }

  async #baseOf(
    request: ResponseRequest,
    previous: string | undefined,
    stored: boolean,
    target: Target,
    { principal, connection }: ResponseCaller,
  ): Promise<Base> {
    const key = await this.#sessionKeyOf(request, target, principal);
    if (key !== undefined) return request.generate === false ? { kind: 'stateless', history: [] } : { kind: 'session', key };
    const fresh = (history: readonly Message[]): Base => ({ kind: stored ? 'chain' : 'stateless', history });
    if (previous === undefined) return fresh([]);
    const remembered = connection?.memory.find(previous);
    if (remembered?.messages && remembered.agent === target.name) return fresh(remembered.messages);
    const found = await this.#options.stored.get(previous, principal);
    if (!found || found.agent !== target.name) throw previousNotFound(previous);
    return stored
      ? { kind: 'stored', previous: found }
      : { kind: 'stateless', history: await this.#options.stored.history(found, principal) };
  }

  /** The key of the session that the request names; undefined if it names none. */
  async #sessionKeyOf({ conversation }: ResponseRequest, target: Target, principal: Principal): Promise<string | undefined> {
    const name = parseSessionKey(typeof conversation === 'object' ? conversation.id : conversation, 'conversation');
    if (!name?.startsWith(CONVERSATION_PREFIX)) return name;
    const { conversations } = this.#options.runtime();
    return conversationSessionKey({ conversation: name, param: 'conversation' }, target, principal, conversations);
  }
}

/** Instructions and system messages apply to one turn; everything else is the conversation. */
function split(
  { messages, origins }: InputMessages,
  instructions: string | undefined,
): { readonly system: readonly Message[]; readonly messages: InputMessages } {
  const sent = messages.filter(({ role }) => role === 'system');
  const system: readonly Message[] = instructions === undefined ? sent : [{ role: 'system', content: instructions }, ...sent];
  const isKept = (_: unknown, index: number) => messages[index]?.role !== 'system';
  return { system, messages: { messages: messages.filter(isKept), origins: origins.filter(isKept) } };
}

/** Origins of messages with others in front of them. */
function shifted(count: number, origins: readonly number[]): readonly number[] {
  return [...Array<number>(count).fill(0), ...origins];
}

function restated(failure: Failure, input: InputMessages): Failure {
  if (failure.code !== 'invalid_request') return failure;
  return { ...failure, ...nameItems(input, 'input', { message: failure.message, param: failure.param }) };
}
