import type { Message, Turn } from '@plugboard/kernel';
import type { TurnContext } from '../../engine/turn/turn-context.js';
import { dueSummary } from '../history/due-summary.js';
import { type HistoryBudget, historyView } from '../history/history-view.js';
import { type SummaryResult, summarize } from '../history/summarize.js';
import { settleOpenCalls } from '../pending/open-calls.js';
import { PendingCalls } from '../pending/pending-calls.js';
import { type BegunTurn, budgetFor, makeTurn, type TurnConversation } from './conversation.js';
import type { LoadedSession, SessionHistory } from './session-history.js';
import { assertNotFull } from './session-limits.js';

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
  readonly pending: PendingCalls;
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
    const stored = await history.current(task.account, deps, signal);
    task.defer(() => history.idle());
    assertNotFull(stored);
    const { system, added, calls } = await settleOpenCalls(deps.approvals, request, history.id, stored.messages);
    const budget = await budgetFor(this.#context, [...system, ...added]);
    const made = await makeTurn(this.#context, [...system, ...historyView(stored, added, agent.history.policy, budget)]);
    const turn = calls.params ? { ...made, params: calls.params } : made;
    const { ids, approvals: records } = deps;
    const { principal } = request;
    const { params } = turn;
    const pending = new PendingCalls({ ids, principal, params, records, visibility: agent.toolVisibility, calls });
    // A response without a turn of its own belongs to the last one.
    task.number = pending.addsNothing(added) ? stored.turns : stored.turns + 1;
    task.recorder?.decide(calls.decisions);
    this.#turn = { id: turn.id, stored, system, added, budget, pending };
    return turn;
  }

  async begin(turn: Turn): Promise<BegunTurn> {
    const { agent, deps } = this.#context;
    const { system, added, budget } = this.#loaded;
    const { id, store } = this.#history;
    const begun = (async () => store.begin(id, { turnId: turn.id, input: added }))();
    try {
      await deps.storeCall(() => begun, 'begin', id);
    } catch (error) {
      // The caller is told that the turn was not run: one that begins too late must not stay.
      begun.then(
        () => this.abandon(),
        () => {},
      );
      throw error;
    }
    const summarizing = this.#summarizeIfDue();
    const { pending } = this.#loaded;
    if (!summarizing) return { turn, usage: undefined, pending };
    const summarized = await summarizing;
    this.#turn = { ...this.#loaded, stored: summarized.stored };
    const view = historyView(summarized.stored, added, agent.history.policy, budget);
    return { turn: { ...turn, messages: [...system, ...view] }, usage: summarized.usage, pending };
  }

  async commit(answer: readonly Message[]): Promise<void> {
    const { agent, task, request, deps } = this.#context;
    const { id: turnId, stored, added, pending } = this.#loaded;
    const state = request.commitState?.(pending.withNotice(answer));
    if (pending.addsNothing(added)) {
      await this.abandon(); // the decisions are stored, and no message is
      if (state) await deps.storeCall(() => this.#history.store.state.change(state), 'commit', this.#history.id);
      await task.idempotent?.store();
      return;
    }
    const times = deps.approvals.timesOf(agent.approvalExpires);
    const { messages, asked, approvals } = pending.commit(added, answer, times);
    const turn = {
      turnId,
      messages,
      record: task.recorder?.text,
      user: request.session?.user,
      idempotency: task.idempotent?.answerRecord(),
      state,
      ...(approvals.length > 0 && { approvals }),
    };
    await deps.storeCall(() => this.#history.commit(stored, turn), 'commit', this.#history.id);
    for (const approval of asked) deps.approvals.auditRequest(approval, this.#history.id, request.principal);
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
