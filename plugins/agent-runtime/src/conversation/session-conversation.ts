import { audit, type Message, type Turn } from '@plugboard/kernel';
import { openToolCalls } from '@plugboard/kernel/contracts';
import { encodeApproval, type NewApproval, settledApproval } from '../approvals/approval.js';
import { auditFields, callerFields } from '../approvals/approval-records.js';
import { approvalNotice } from '../approvals/notice.js';
import { TurnApprovals } from '../approvals/turn-approvals.js';
import { type HistoryBudget, historyView } from '../history/history-view.js';
import { hasNewMessages, newMessages } from '../history/session-input.js';
import { dueSummary } from '../history/summary/due-summary.js';
import type { TurnContext } from '../lifecycle/turn-context.js';
import { ApprovalTail, decisionsOf, isBlocked, NO_TAIL, type SettledTail } from './approval-tail.js';
import { withResults, withTail } from './approved-results.js';
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
  readonly tail: SettledTail;
  readonly approvals: TurnApprovals;
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
    const { system, added, tail } = await this.#newMessages(stored.messages);
    const budget = await budgetFor(this.#context, [...system, ...added]);
    const made = await makeTurn(this.#context, [...system, ...historyView(stored, added, agent.history.policy, budget)]);
    const turn = tail.params ? { ...made, params: tail.params } : made;
    // A response without a turn of its own belongs to the last one.
    task.number = isBlocked(tail) && added.length === 0 ? stored.turns : stored.turns + 1;
    task.recorder?.decide(decisionsOf(tail));
    const { principal } = request;
    const { params } = turn;
    const { ids, approvals: records } = deps;
    const approvals = new TurnApprovals({ ...tail, ids, principal, params, records, visibility: agent.toolVisibility });
    this.#turn = { id: turn.id, stored, system, added, budget, tail, approvals };
    return turn;
  }

  /** What the request adds, and what becomes of the calls that were open. */
  async #newMessages(stored: readonly Message[]): Promise<Pick<SessionTurn, 'system' | 'added' | 'tail'>> {
    const { request } = this.#context;
    if (request.approvals === undefined && openToolCalls(stored).length === 0)
      return { ...newMessages(stored, request.messages), tail: NO_TAIL };
    const read = await ApprovalTail.read(this.#context, this.#history.id, stored);
    // A decision before the caller's own results waits for them.
    const results = read.decides && !hasNewMessages(stored, read.messages) ? read.openResults : [];
    const { system, added: fresh } = newMessages(stored, read.messages, new Set([...read.callIds, ...results]), read.decides);
    const tail = { ...(await read.settle(fresh.some(({ role }) => role !== 'tool'))), results };
    const hasResults = read.messages.some(({ role }) => role === 'tool');
    return { system, added: withTail(fresh, tail, hasResults), tail };
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
    const { approvals } = this.#loaded;
    if (!summarizing) return { turn, usage: undefined, approvals };
    const summarized = await summarizing;
    this.#turn = { ...this.#loaded, stored: summarized.stored };
    const view = historyView(summarized.stored, added, agent.history.policy, budget);
    return { turn: { ...turn, messages: [...system, ...view] }, usage: summarized.usage, approvals };
  }

  async commit(answer: readonly Message[]): Promise<void> {
    const { task, request, deps } = this.#context;
    const { id: turnId, stored, added, tail, approvals: asking } = this.#loaded;
    const state = request.commitState?.(this.#withNotice(answer));
    if (isBlocked(tail) && added.length === 0) {
      await this.abandon(); // the decisions are stored, and no message is
      if (state) await deps.storeCall(() => this.#history.store.state.change(state), 'commit', this.#history.id);
      await task.idempotent?.store();
      return;
    }
    const asked = isBlocked(tail) ? [] : this.#asked(answer);
    const isAsked = new Set(asked.map(({ call }) => call.id));
    const messages = withResults(added, answer, asking.outcomes, isAsked);
    const decided = isBlocked(tail) ? [] : [...tail.approved, ...tail.denied];
    const settled = decided.filter(({ call }) => !isAsked.has(call.id)).map(settledApproval);
    const turn = {
      turnId,
      messages,
      record: task.recorder?.text,
      user: request.session?.user,
      idempotency: task.idempotent?.answerRecord(),
      state,
      ...(asked.length + settled.length > 0 && { approvals: [...asked, ...settled].map(encodeApproval) }),
    };
    await deps.storeCall(() => this.#history.commit(stored, turn), 'commit', this.#history.id);
    for (const approval of asked) {
      const fields = {
        ...auditFields({ ...approval, stored: { session: this.#history.id } }),
        ...callerFields(request.principal),
      };
      audit(deps.log, 'approval_requested', fields, 'a tool call waits for approval');
    }
  }

  /** The answer as its reader sees it: with the server's text about the calls that wait. */
  #withNotice(answer: readonly Message[]): readonly Message[] {
    const { tail, approvals } = this.#loaded;
    const content = approvalNotice(isBlocked(tail) ? approvals.waiting : approvals.asked, approvals.visibility);
    return content === '' ? answer : [...answer, { role: 'assistant', content }];
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

  /** The calls that wait now, as they are stored. */
  #asked(answer: readonly Message[]): readonly (NewApproval & { readonly createdAt: number; readonly expiresAt: number })[] {
    const { agent, deps } = this.#context;
    const { asked } = this.#loaded.approvals;
    if (asked.length === 0) return [];
    const again = this.#loaded.tail.approved.map(({ call }) => call.id);
    const open = new Set([...openToolCalls(answer), ...again]);
    const times = deps.approvals.timesOf(agent.approvalExpires);
    const waiting = asked.filter(({ call }) => open.has(call.id));
    return waiting.map(({ params, ...approval }, at) => ({ ...approval, ...times, ...(at === 0 && { params }) }));
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
