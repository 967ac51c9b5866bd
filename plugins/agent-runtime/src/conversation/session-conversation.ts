import type { Message, Turn } from '@plugboard/kernel';
import { type HistoryBudget, historyView } from '../history/history-view.js';
import { newMessages } from '../history/session-input.js';
import { dueSummary } from '../history/summary/due-summary.js';
import type { TurnContext } from '../lifecycle/turn-context.js';
import { type BegunTurn, budgetFor, makeTurn, type TurnConversation } from './conversation.js';
import type { LoadedSession, SessionHistory } from './session-history.js';
import { assertNotFull } from './session-limits.js';
import { type SummaryResult, summarize } from './summarize.js';

/** What a turn loaded from its session. */
interface SessionTurn {
  readonly id: string;
  readonly stored: LoadedSession;
  /** System messages of the request. They apply to this turn only. */
  readonly system: readonly Message[];
  /** The new messages of the request. They are stored with the turn. */
  readonly added: readonly Message[];
  /** What fits of the stored messages. */
  readonly budget: HistoryBudget;
}

/** The conversation of a session. */
export class SessionConversation implements TurnConversation {
  readonly isStored = true;
  readonly #context: TurnContext;
  readonly #history: SessionHistory;
  #turn: SessionTurn | undefined;

  constructor(context: TurnContext, history: SessionHistory) {
    this.#context = context;
    this.#history = history;
  }

  async load(): Promise<Turn> {
    const { task, agent, request, signal, deps } = this.#context;
    const history = this.#history;
    const earlierTools = deps.tools.settled(history.id, signal);
    if (earlierTools) await earlierTools;
    const stored = await deps.storeCall(() => history.current(), 'load', history.id);
    assertNotFull(stored);
    const { system, added } = newMessages(stored.messages, request.messages);
    const budget = await budgetFor(this.#context, [...system, ...added]);
    const turn = await makeTurn(this.#context, [...system, ...historyView(stored, added, agent.history.policy, budget)]);
    task.number = stored.turns + 1;
    this.#turn = { id: turn.id, stored, system, added, budget };
    return turn;
  }

  async begin(turn: Turn): Promise<BegunTurn> {
    const { agent, deps } = this.#context;
    const { system, added, budget } = this.#loaded;
    const { id, store } = this.#history;
    await deps.storeCall(() => store.begin(id, { turnId: turn.id, input: added }), 'begin', id);
    const summarizing = this.#summarizeIfDue();
    if (!summarizing) return { turn, usage: undefined };
    const summarized = await summarizing;
    this.#turn = { ...this.#loaded, stored: summarized.stored };
    const view = historyView(summarized.stored, added, agent.history.policy, budget);
    return { turn: { ...turn, messages: [...system, ...view] }, usage: summarized.usage };
  }

  async commit(answer: readonly Message[]): Promise<void> {
    const { task, request, deps } = this.#context;
    const { id: turnId, stored, added } = this.#loaded;
    const turn = {
      turnId,
      messages: [...added, ...answer],
      user: request.session?.user,
      idempotency: task.idempotent?.answerRecord(),
      state: request.commitState?.(answer),
    };
    await deps.storeCall(() => this.#history.commit(stored, turn), 'commit', this.#history.id);
  }

  async abandon(): Promise<void> {
    const { id, store } = this.#history;
    // If this fails too, `recover` finds the turn at the next start.
    await this.#context.deps.storeCall(() => store.abandon(id, this.#loaded.id), 'abandon', id).catch(() => {});
  }

  get #loaded(): SessionTurn {
    if (!this.#turn) throw new Error('the session has not been loaded');
    return this.#turn;
  }

  /** Summarizes the oldest turns of the conversation. Returns undefined if that is not due. */
  #summarizeIfDue(): Promise<SummaryResult> | undefined {
    const { agent, signal, deps } = this.#context;
    const { stored, added, budget } = this.#loaded;
    if (!this.#history.maySummarize(stored)) return undefined;
    const due = dueSummary(stored, added, agent.history.policy, budget);
    return due && summarize(this.#history, stored, due, agent, this.#context.request, deps.models, deps.storeCall, signal);
  }
}
