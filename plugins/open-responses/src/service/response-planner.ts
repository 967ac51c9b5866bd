import {
  AgentRuntimes,
  type Clock,
  type Extensions,
  type IdSource,
  type Message,
  type PluginContext,
  type Principal,
} from '@plugboard/kernel';
import {
  type AgentRuntime,
  CONVERSATION_PREFIX,
  conversationId,
  type Failure,
  openToolCalls,
  SHAPE_LIMITS,
  type Target,
  withSummary,
} from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { invalidValue, parseSessionKey, resolveAgent, turnFailureError } from '@plugboard/openai-protocol';
import { conversationKeyOf, SealedExtras } from '@plugboard/turn-routes';
import { type InputMessages, messagesOf, nameItems, type ReadItems } from '../items/input-messages.js';
import { connectionForTextOnly } from '../items/input-parts.js';
import { type ClientTools, clientToolsOf } from '../request/client-tools.js';
import { echoOf } from '../request/echo.js';
import { listedItems } from '../request/input-items.js';
import { ENCRYPTED_REASONING, parametersOf } from '../request/parameters.js';
import { conversationName, type InputItem, type ResponseRequest } from '../request/request.js';
import { type Carried, NOTHING_CARRIED } from './carried.js';
import { Compaction } from './compaction.js';
import { resolveReferences } from './resolve-references.js';
import { previousNotCommitted, previousNotFound } from './response-errors.js';
import type { Base, InputCaller, Plan, ResponseCaller } from './response-plan.js';
import { StoredResponses } from './stored-responses.js';
import { SummaryTokens } from './summary-tokens.js';
import { visibleMessages } from './visible-messages.js';

const ID_LENGTH = 24;

/** What a request continues. */
interface Continued {
  readonly base: Base;
  /** The id of the previous response. */
  readonly previous?: string;
  readonly summary?: string | undefined;
  readonly carried?: Carried;
}

/**
 * Checks requests and finds what they continue: agent, tools, parameters, input, history. Runs and
 * stores nothing.
 */
export class ResponsePlanner {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #clock: Clock;
  readonly #ids: IdSource;
  readonly #stored: StoredResponses;
  readonly #summaries: SummaryTokens;
  readonly #extras: SealedExtras;

  constructor(
    @inject(CONTEXT) { extensions, clock, ids, state }: PluginContext,
    @inject(StoredResponses) stored: StoredResponses,
    @inject(SummaryTokens) summaries: SummaryTokens,
  ) {
    this.#runtimes = extensions(AgentRuntimes);
    this.#clock = clock;
    this.#ids = ids;
    this.#stored = stored;
    this.#summaries = summaries;
    this.#extras = new SealedExtras(state);
  }

  /** @throws ProtocolError for a request that cannot be served. @throws TurnError */
  async plan(request: ResponseRequest, caller: ResponseCaller): Promise<Plan> {
    const { principal } = caller;
    const target = resolveAgent(this.#runtimes.one(), request.model ?? caller.defaultModel ?? '', 'model', principal);
    const items = await this.#itemsOf(request, caller);
    const input = await this.#messagesOf(items, target, principal);
    const compaction = this.#compactionOf(items, principal);
    const stored = request.store !== false && request.generate !== false && !compaction;
    const {
      base,
      previous,
      summary,
      carried = NOTHING_CARRIED,
    } = await this.#baseOf(request, { stored, compacts: compaction !== undefined }, target, caller);
    const clientTools = clientToolsOf(request, items, carried.tools, target);
    const keepsReasoning = base.kind === 'stateless' && !compaction && request.include?.includes(ENCRYPTED_REASONING) === true;
    const seal = keepsReasoning ? await this.#extras.for(principal.project) : undefined;
    const { params, ignored } = parametersOf(request, target, clientTools, keepsReasoning);
    const isNamed = base.kind === 'session';
    if (compaction && isNamed) {
      const why = "a conversation that the server keeps is summarized by the agent's own `history`; omit 'conversation'";
      throw invalidValue(`input[${items.length - 1}].type`, why);
    }
    const asked = summary === undefined ? input : { ...input, messages: withSummary(summary, input.messages) };
    const { said, conversation } = split(asked, request);
    const { instructions } = request;
    const prompt: readonly Message[] = instructions === undefined ? [] : [{ role: 'system', content: instructions }];
    const system = [...prompt, ...carried.system, ...said];
    const history = 'history' in base ? base.history : undefined;
    const isEmpty = conversation.messages.length === 0 && input.approvals.length === 0 && history?.length === 0;
    if (isEmpty && request.generate !== false && !compaction) {
      throw invalidValue('input', 'it has no message for the model, because items of unknown types are left out');
    }
    const added = [...unanswered(history ?? [], conversation.messages), ...conversation.messages];
    // A session begins with the history; without one, the runtime is given it apart.
    const seed = base.kind === 'chain' ? base.history : [];
    const messages = compaction ? [...(history ?? []), ...input.messages] : [...system, ...seed, ...added];
    const sent = { messages, origins: conversation.origins };
    const user = parseSessionKey(request.user, 'user');
    const id = `resp_${this.#ids.base62(ID_LENGTH)}`;
    return {
      request,
      caller,
      base,
      input: listedItems(items, id),
      stored,
      ignored: [...ignored, ...clientTools.ignored, ...input.ignored],
      forms: clientTools.forms,
      carried: { system: [...carried.system, ...said], tools: clientTools.added, stored: carried.stored },
      compaction,
      head: {
        id,
        createdAt: this.now(),
        model: request.model ?? caller.defaultModel ?? target.name,
        agent: target.name,
        echo: echoOf(request, {
          previous,
          conversation: isNamed ? conversationId({ project: principal.project, agent: target.name, key: base.key }) : undefined,
          stored,
        }),
      },
      turn: {
        target,
        principal,
        account: caller.account,
        messages,
        hasOwnExtras: true,
        approvals: input.approvals,
        clientTools: compaction ? [] : clientTools.declarations,
        params: compaction ? {} : params,
        maxToolCalls: request.max_tool_calls,
        incremental: caller.incremental,
        requestId: caller.requestId,
        connectionId: caller.connectionId,
        user,
        transport: caller.transport,
        metadata: request.metadata ?? {},
      },
      showsReasoning: request.reasoning?.summary != null && target.toolVisibility === 'full',
      seal,
      errorOf: (failure) => turnFailureError(inTermsOfRequest(failure, sent, clientTools), isNamed, 'input'),
    };
  }

  /** A request whose last item is a `compaction_trigger` asks for a summary (CL-4). */
  #compactionOf(items: readonly InputItem[], { project }: Principal): Compaction | undefined {
    if (items.at(-1)?.type !== 'compaction_trigger') return undefined;
    return new Compaction((summary) => this.#summaries.seal(summary, project));
  }

  /** Unix time, seconds. */
  now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }

  /** The items of a request's `input`, with references replaced. */
  async #itemsOf({ input = [] }: ResponseRequest, caller: InputCaller): Promise<readonly InputItem[]> {
    if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
    return resolveReferences(input, this.#stored, caller);
  }

  async #messagesOf(items: readonly InputItem[], target: Target, { project }: Principal): Promise<ReadItems> {
    const hasReasoning = items.some(({ type, encrypted_content }) => type === 'reasoning' && encrypted_content != null);
    const seal = hasReasoning ? await this.#extras.for(project) : undefined;
    return messagesOf(items, {
      param: 'input',
      maxItems: SHAPE_LIMITS.items,
      textOnly: connectionForTextOnly(target),
      purpose: 'turn',
      nameAtModel: (entry, tool) => target.nameAtModel(entry, tool),
      openReasoning: (content) => seal?.open(content),
      readSummary: await this.#summaries.reader(items, project),
    });
  }

  /** Finds what a request continues, and the id of the previous response if it continues one. */
  async #baseOf(
    request: ResponseRequest,
    { stored, compacts }: { readonly stored: boolean; readonly compacts: boolean },
    target: Target,
    { principal, account, connection }: ResponseCaller,
  ): Promise<Continued> {
    const fresh = (history: readonly Message[]): Base => ({ kind: stored ? 'chain' : 'stateless', history });
    const key = await this.#sessionKeyOf(request, target, principal);
    if (key !== undefined) return { base: request.generate === false ? fresh([]) : { kind: 'session', key } };
    const last = connection?.isConversation ? connection.memory.last(request.stream_id ?? '') : undefined;
    // A message to another agent begins a conversation with that one: agents share none.
    const previous = request.previous_response_id ?? (last?.agent === target.name ? last.id : undefined);
    if (previous === undefined) return { base: fresh([]) };

    const remembered = connection?.memory.find(previous);
    if (remembered && remembered.agent !== target.name) throw previousNotFound(previous);
    if (remembered?.session !== undefined && request.previous_response_id === undefined) {
      return { base: { kind: 'session', key: remembered.session }, previous };
    }
    const view = { toolVisibility: compacts ? target.toolVisibility : 'full', toolOf: () => undefined } as const;
    if (remembered?.messages)
      return {
        base: fresh(visibleMessages(remembered.messages, view)),
        previous,
        summary: remembered.summary,
        carried: remembered.carried,
      };
    const found = await this.#stored.locate(previous, principal, account);
    if (!found || found.agent !== target.name) throw previousNotFound(previous);
    if (found.turn === 0) throw previousNotCommitted(previous);
    const { carried } = found;
    if (stored) return { base: { kind: 'stored', previous: found }, previous, carried };
    // A summary shows no more than its caller may see.
    const history = await this.#stored.history(found, principal, account, compacts ? visibleMessages : undefined);
    return { base: { kind: 'stateless', history }, previous, carried };
  }

  /** The key of the session that the request names; undefined if it names none. */
  async #sessionKeyOf(request: ResponseRequest, target: Target, principal: Principal): Promise<string | undefined> {
    const name = parseSessionKey(conversationName(request), 'conversation');
    if (!name?.startsWith(CONVERSATION_PREFIX)) return name;
    const { conversations } = this.#runtimes.one();
    return conversationKeyOf({ conversation: name, param: 'conversation' }, target, principal, conversations, invalidValue);
  }
}

/**
 * Separates the system messages, which no session stores, from the conversation. Alone, they are
 * what the model is asked: they become user messages then, which every provider requires.
 */
function split(
  { messages, origins }: InputMessages,
  { generate }: ResponseRequest,
): { readonly said: readonly Message[]; readonly conversation: InputMessages } {
  if (generate !== false && messages.length > 0 && messages.every(({ role }) => role === 'system')) {
    const asked = messages.map((one) => [{ ...one, role: 'user' } as Message, origins.get(one) ?? 0] as const);
    return { said: [], conversation: { messages: asked.map(([message]) => message), origins: new Map(asked) } };
  }
  const said = messages.filter(({ role }) => role === 'system');
  return { said, conversation: { messages: messages.filter(({ role }) => role !== 'system'), origins } };
}

/**
 * Error results for the calls of a conversation that its caller leaves open, so that every provider
 * accepts it.
 */
function unanswered(history: readonly Message[], [first]: readonly Message[]): readonly Message[] {
  if (first?.role === 'tool') return [];
  const content = 'Error: the caller returned no result for this call.';
  return openToolCalls(history).map((id): Message => ({ role: 'tool', tool_call_id: id, content }));
}

/** Names what the request has at the place that a failure names. */
function inTermsOfRequest(failure: Failure, input: InputMessages, { params }: ClientTools): Failure {
  if (failure.code !== 'invalid_request') return failure;
  const [, tool] = /^tools\[(\d+)\]/.exec(failure.param ?? '') ?? [];
  if (tool !== undefined) return { ...failure, param: `${params[Number(tool)] ?? 'tools'}.name` };
  return { ...failure, ...nameItems(input, 'input', { message: failure.message, param: failure.param }) };
}
