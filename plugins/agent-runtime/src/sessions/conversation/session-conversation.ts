import type { Message, Turn } from '@plugboard/kernel';
import type { HistoryBudget } from '../../engine/messages/newest-turns.js';
import type { BegunTurn, TurnConversation } from '../../engine/turn/conversation.js';
import type { TurnContext } from '../../engine/turn/turn-context.js';
import { dueSummary } from '../history/due-summary.js';
import { historyView } from '../history/history-view.js';
import { OpenCalls } from '../pending/open-calls.js';
import { settleOpenCalls } from '../pending/settle-open-calls.js';
import { answerRecord } from '../store/idempotency.js';
import type { ConversationStorage } from './conversation-storage.js';
import { budgetFor, makeTurn } from './make-turn.js';
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
  readonly pending: OpenCalls;
}

/** The conversation of a session. */
export class SessionConversation implements TurnConversation {
  readonly isStored = true;
  readonly #context: TurnContext;
  readonly #storage: ConversationStorage;
  readonly #history: SessionHistory;
  #turn: SessionTurn | undefined;

  constructor(context: TurnContext, history: SessionHistory, storage: ConversationStorage) {
    this.#context = context;
    this.#storage = storage;
    this.#history = history;
  }

  async load(): Promise<Turn> {
    const { task, agent, request, signal, deps } = this.#context;
    const { storeCall, approvals: records } = this.#storage;
    const history = this.#history;
    const stored = await history.current(task.account, { memory: deps.memory, storeCall }, signal);
    task.defer(() => history.idle());
    assertNotFull(stored);
    const asked = { ...request, account: task.account };
    const { system, added, calls } = await settleOpenCalls(records, asked, history.id, stored.messages);
    const budget = await budgetFor(this.#context, [...system, ...added]);
    const made = await makeTurn(this.#context, [...system, ...historyView(stored, added, agent.history.policy, budget)]);
    const turn = calls.params ? { ...made, params: calls.params } : made;
    const pending = new OpenCalls({ ids: deps.ids, agent, turn, records, calls });
    // A response without a turn of its own belongs to the last one.
    task.number = pending.addsNothing(added) ? stored.turns : stored.turns + 1;
    task.recorder?.decide(calls.decisions);
    this.#turn = { id: turn.id, stored, system, added, budget, pending };
    return turn;
  }

  async begin(turn: Turn): Promise<BegunTurn> {
    const { agent, request } = this.#context;
    const { system, added, budget } = this.#loaded;
    const { id, store, conversation } = this.#history;
    // A transport that commits its state with the turn runs it again after a crash.
    const input = request.commitState ? [] : added;
    const begun = (async () => store.begin(id, { turnId: turn.id, input }))();
    try {
      await this.#storage.storeCall(() => begun, 'begin', id);
    } catch (error) {
      // The error says that the turn was not run, so one that begins later is removed.
      begun.then(
        () => this.abandon(),
        () => {},
      );
      throw error;
    }
    const summarizing = this.#summarizeIfDue();
    const { pending } = this.#loaded;
    if (!summarizing) return { turn, usage: undefined, conversation, pending };
    const summarized = await summarizing;
    this.#turn = { ...this.#loaded, stored: summarized.stored };
    const view = historyView(summarized.stored, added, agent.history.policy, budget);
    return { turn: { ...turn, messages: [...system, ...view] }, usage: summarized.usage, conversation, pending };
  }

  async commit(answer: readonly Message[]): Promise<void> {
    const { agent, task, request } = this.#context;
    const { storeCall, approvals: records } = this.#storage;
    const { idempotency } = request;
    const { store } = this.#history;
    const { id: turnId, stored, added, pending } = this.#loaded;
    const state = request.commitState?.(pending.withNotice(answer));
    if (pending.addsNothing(added)) {
      await this.abandon(); // the decisions are stored, and no message is
      if (state) await storeCall(() => store.state.change(state), 'commit', this.#history.id);
      if (idempotency) await storeCall(() => store.idempotency.put(answerRecord(idempotency)), 'idempotency.put');
      return;
    }
    const asking = { turn: stored.turns + 1, ...records.timesOf(agent.approvalExpires) };
    const { messages, asked, approvals } = pending.commit(added, answer, asking);
    const turn = {
      turnId,
      messages,
      record: task.recorder?.text,
      user: request.session?.user,
      idempotency: idempotency && answerRecord(idempotency),
      state,
      ...(approvals.length > 0 && { approvals }),
    };
    await storeCall(() => this.#history.commit(stored, turn), 'commit', this.#history.id);
    for (const approval of asked) records.auditRequest(approval, this.#history.id, request.principal);
  }

  async abandon(): Promise<void> {
    const { id, store } = this.#history;
    // If this fails too, `recover` finds the turn at the next start.
    await this.#storage.storeCall(() => store.abandon(id, this.#loaded.id), 'abandon', id).catch(() => {});
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
    return (
      due && summarize(this.#history, stored, due, agent, this.#context.request, deps.models, this.#storage.storeCall, signal)
    );
  }
}
