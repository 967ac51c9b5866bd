import type { Message, Turn } from '@plugboard/kernel';
import { startOfTurn } from '../../engine/messages/newest-turns.js';
import { resultsInOrder } from '../../engine/messages/results-in-order.js';
import { NO_TOOLS } from '../../engine/tools/toolbox.js';
import type { BegunTurn, TurnContext, TurnConversation } from '../../engine/turn/conversation.js';
import { summaryOfAll } from '../history/due-summary.js';
import { historyView } from '../history/history-view.js';
import { assertPairedToolCalls, newMessages } from '../history/session-input.js';
import { summaryRequest } from '../history/summary-request.js';
import { approvalNotFound } from '../pending/approval.js';
import { type ResumedConversation, resumedConversation, waitingChild } from '../pending/child-state.js';
import { ClientCalls } from '../pending/client-calls.js';
import { OpenCalls } from '../pending/open-calls.js';
import { answerRecord } from '../store/idempotency.js';
import { reserveIn, type SessionStorage } from '../store/session-storage.js';
import { budgetFor, makeTurn } from './make-turn.js';

/**
 * A conversation without a session: the caller sends it with each request, or its transport does.
 */
export class StatelessConversation implements TurnConversation {
  readonly #context: TurnContext;
  readonly #storage: SessionStorage;
  /** Present if one step may call both client tools and tools of the agent. */
  readonly #clientCalls: ClientCalls | undefined;
  /** The conversation before the turn. */
  #messages: readonly Message[];
  /** Present if the turn goes on that a call started. */
  readonly #resumed: ResumedConversation | undefined;
  #pending: OpenCalls | undefined;

  constructor(context: TurnContext, storage: SessionStorage) {
    const { agent, request } = context;
    this.#context = context;
    this.#storage = storage;
    this.#messages = request.messages;
    this.#resumed = resumedConversation(context.parent);
    if (agent.tools.length > 0 && agent.clientTools === 'passthrough')
      this.#clientCalls = new ClientCalls(storage.store, agent.name, request.principal);
  }

  get isStored(): boolean {
    return this.#clientCalls !== undefined || this.#context.parent !== undefined;
  }

  async load(): Promise<Turn> {
    const { request, agent } = this.#context;
    const { history, messages, commitState, approvals } = request;
    if (commitState)
      throw new Error('a turn without a session has no commit, so commitState has no effect; put the state instead');
    if (approvals?.[0]) throw approvalNotFound(approvals[0].id);
    if (request.summarize) {
      const tokens = Math.min(agent.contextWindow, agent.limits.tokens);
      return makeTurn(this.#context, summaryRequest(messages, summaryOfAll(messages), tokens));
    }
    if (this.#resumed) {
      this.#messages = [...messages, ...this.#resumed.earlier, ...this.#resumed.results];
      return makeTurn(this.#context, this.#messages);
    }
    if (history === undefined) {
      assertPairedToolCalls(messages);
      if (this.#clientCalls) this.#messages = await this.#expanded(messages, this.#clientCalls);
      return makeTurn(this.#context, this.#messages);
    }
    const { system, conversation } = await this.#continued(history, messages);
    this.#messages = [...system, ...conversation];
    return makeTurn(this.#context, [...system, ...this.#view(system, conversation)]);
  }

  async begin(turn: Turn): Promise<BegunTurn> {
    const { agent, ids, toolbox, parent } = this.#context;
    const calls = this.#resumed && { calls: this.#resumed.calls };
    this.#pending = toolbox === NO_TOOLS && !calls ? undefined : new OpenCalls({ ids, agent, turn, parent, ...calls });
    return { turn, usage: undefined, conversation: undefined, pending: this.#pending };
  }

  async commit(answer: readonly Message[]): Promise<void> {
    const { parent, agent } = this.#context;
    const waiting = this.#pending?.waiting(this.#resumed?.results ?? [], answer);
    if (parent) parent.waiting = waitingChild(parent, waiting, this.#resumed, agent.toolVisibility);
    const calls = this.#clientCalls;
    if (calls) await this.#storage.call(() => calls.save(this.#messages, answer), 'pendingToolCalls.save');
    const { idempotency } = this.#context.request;
    if (!idempotency) return;
    await this.#storage.call((store) => store.idempotency.put(answerRecord(idempotency)), 'idempotency.put');
  }

  async abandon(): Promise<void> {}

  /** The conversation after a request, if its transport keeps what was before. */
  async #continued(
    history: readonly Message[],
    messages: readonly Message[],
  ): Promise<{ readonly system: readonly Message[]; readonly conversation: readonly Message[] }> {
    if (history.length > 0) {
      const { system, added } = newMessages(history, messages);
      return { system, conversation: resultsInOrder([...history, ...added]) };
    }
    assertPairedToolCalls(messages);
    const conversation = messages.filter(({ role }) => role !== 'system');
    return {
      system: messages.filter(({ role }) => role === 'system'),
      conversation: this.#clientCalls ? await this.#expanded(conversation, this.#clientCalls) : conversation,
    };
  }

  /** What the model receives of a conversation: what fits of its older turns, and its last turn. */
  #view(system: readonly Message[], conversation: readonly Message[]): readonly Message[] {
    const { policy } = this.#context.agent.history;
    const start = startOfTurn(conversation, conversation.length - 1);
    const last = conversation.slice(start);
    const budget = budgetFor(this.#context, [...system, ...last]);
    return historyView({ messages: conversation.slice(0, start) }, last, policy, budget);
  }

  async #expanded(messages: readonly Message[], calls: ClientCalls): Promise<readonly Message[]> {
    const reserve = reserveIn(this.#context.task.account);
    const expanded = await this.#storage.call(() => calls.expand(messages, reserve), 'pendingToolCalls.load');
    return expanded === messages ? messages : resultsInOrder(expanded);
  }
}
