import type { Message, SessionStore, Turn } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import type { HistoryBudget } from '../../engine/messages/newest-turns.js';
import { NO_TOOLS } from '../../engine/tools/toolbox.js';
import type { BegunTurn, TurnContext, TurnConversation } from '../../engine/turn/conversation.js';
import { dueSummary } from '../history/due-summary.js';
import { historyView } from '../history/history-view.js';
import type { ApprovalRecords } from '../pending/approval-records.js';
import { type ResumedConversation, resumedConversation, waitingChild } from '../pending/child-state.js';
import { OpenCalls } from '../pending/open-calls.js';
import { NOTHING_OPEN, settleOpenCalls } from '../pending/settle-open-calls.js';
import type { TurnJournal } from '../pending/turn-journal.js';
import { answerRecord } from '../store/idempotency.js';
import { parentSessionOf } from '../store/session-of.js';
import { outrun, type SessionStorage } from '../store/session-storage.js';
import { budgetFor, makeTurn } from './make-turn.js';
import { assertNotFull, type LoadedSession, type SessionHistory } from './session-history.js';
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
  /** Absent if no call is open and the agent has no tools. */
  readonly pending: OpenCalls | undefined;
  /** Present if the turn goes on that a call started. */
  readonly resumed: ResumedConversation | undefined;
  /** Its calls that may write. Absent without tools, and if the store lasts no longer than they. */
  readonly journal: TurnJournal | undefined;
}

export class SessionConversation implements TurnConversation {
  readonly isStored = true;
  readonly #context: TurnContext;
  readonly #history: SessionHistory;
  readonly #storage: SessionStorage;
  readonly #records: ApprovalRecords;
  #turn: SessionTurn | undefined;

  constructor(context: TurnContext, history: SessionHistory, storage: SessionStorage, records: ApprovalRecords) {
    this.#context = context;
    this.#history = history;
    this.#storage = storage;
    this.#records = records;
  }

  async load(): Promise<Turn> {
    const { task, agent, parent, request, signal, ids, toolbox, revision } = this.#context;
    const history = this.#history;
    const records = this.#records;
    const stored = await history.current(task.account, signal, task.lease?.version);
    task.defer(() => history.idle());
    assertNotFull(stored);
    const { turns = stored.turns } = request.session ?? {};
    if (turns !== stored.turns) throw sessionMoved(stored.turns);
    const settling = settleOpenCalls(records, request, task.account, history.id, stored.messages);
    const settled = settling instanceof Promise ? await settling : settling;
    const { system } = settled;
    const resumed = resumedConversation(parent);
    const added = resumed ? [...settled.added, ...resumed.earlier, ...resumed.results] : settled.added;
    const { calls } = resumed ?? settled;
    const budget = budgetFor(this.#context, after(system, added));
    const made = makeTurn(this.#context, after(system, historyView(stored, added, agent.history.policy, budget)));
    const turn = calls.params ? { ...made, params: calls.params } : made;
    const isIdle = calls === NOTHING_OPEN && toolbox === NO_TOOLS;
    // The calls of a child are kept with the call that asked it.
    const kept = parent ? { parent } : { records };
    const journal = toolbox === NO_TOOLS ? undefined : kept.records?.journalOf(history.id, turn);
    const { directory } = revision;
    const pending = isIdle ? undefined : new OpenCalls({ ids, agent, turn, calls, journal, directory, ...kept });
    // A response without a turn of its own belongs to the last one.
    task.number = pending?.addsNothing(added) ? stored.turns : stored.turns + 1;
    task.recorder?.decide(calls.decisions);
    this.#turn = { id: turn.id, stored, system, added, budget, pending, journal, resumed };
    return turn;
  }

  async begin(turn: Turn): Promise<BegunTurn> {
    const { agent, request } = this.#context;
    const { system, added, budget } = this.#loaded;
    const { id, conversation } = this.#history;
    const parent = parentSessionOf(request);
    // A transport that commits its state with the turn runs it again after a crash, and the turn
    // whose call started this one is run again itself.
    const input = request.commitState || parent ? [] : added;
    let begun: Promise<void> | undefined;
    const begin = (store: SessionStore) => {
      begun = store.begin(id, { turnId: turn.id, input, ...(parent && { parent }) });
      return begun;
    };
    try {
      await this.#storage.call(begin, 'begin', id);
    } catch (error) {
      // The error says that the turn was not run, so one that begins later is removed.
      begun?.then(
        () => this.abandon(),
        () => {},
      );
      throw error;
    }
    const summarizing = this.#summarizeIfDue(turn);
    const { pending } = this.#loaded;
    if (!summarizing) return { turn, usage: undefined, conversation, pending };
    const summarized = await summarizing;
    this.#turn = { ...this.#loaded, stored: summarized.stored };
    const view = historyView(summarized.stored, added, agent.history.policy, budget);
    return { turn: { ...turn, messages: after(system, view) }, usage: summarized.usage, conversation, pending };
  }

  async commit(answer: readonly Message[]): Promise<void> {
    const { task, agent, parent, request } = this.#context;
    const storage = this.#storage;
    const { idempotency } = request;
    const { id } = this.#history;
    const { id: turnId, stored, added, pending, journal, resumed } = this.#loaded;
    const child = pending?.waiting(resumed?.results ?? [], answer);
    if (parent) parent.waiting = waitingChild(parent, child, resumed, agent.toolVisibility);
    if (parent?.waiting) return this.abandon(); // it is kept with the call
    const state = request.commitState?.(pending?.withNotice(answer) ?? answer);
    if (pending?.addsNothing(added)) {
      await this.abandon(); // the decisions are stored, and no message is
      if (state && !(await storage.call((store) => store.state.change(state), 'commit', id))) throw outrun();
      if (idempotency) await storage.call((store) => store.idempotency.put(answerRecord(idempotency)), 'idempotency.put');
      return;
    }
    const waiting = pending?.commit(added, answer, stored.turns + 1);
    const removals = journal?.removals ?? [];
    const turn = {
      turnId,
      messages: waiting?.messages ?? [...added, ...answer],
      record: task.recorder?.text,
      user: request.session?.user,
      idempotency: idempotency && answerRecord(idempotency),
      state: removals.length > 0 ? [...(state ?? []), ...removals] : state,
      approvals: waiting?.approvals,
    };
    await this.#history.commit(stored, turn);
    for (const approval of waiting?.asked ?? []) this.#records.auditRequest(approval, id, request.principal);
  }

  async abandon(): Promise<void> {
    const { id } = this.#history;
    const { id: turnId, journal } = this.#loaded;
    const { lease } = this.#context.task;
    // What fails in this process leaves nothing in the session. One that is lost is another's.
    if (!lease || lease.isHeld) await journal?.clear();
    if (lease) return lease.abandon();
    // If this fails too, `recover` finds the turn at the next start.
    await this.#storage.call((store) => store.abandon(id, turnId), 'abandon', id).catch(() => {});
  }

  get #loaded(): SessionTurn {
    if (!this.#turn) throw new Error('the session has not been loaded');
    return this.#turn;
  }

  /** Summarizes the oldest turns of the conversation. Returns undefined if that is not due. */
  #summarizeIfDue(turn: Turn): Promise<SummaryResult> | undefined {
    const { stored, added, budget } = this.#loaded;
    if (!this.#history.maySummarize(stored)) return undefined;
    const due = dueSummary(stored, added, this.#context.agent.history.policy, budget);
    return due && summarize(this.#context, turn, this.#history, stored, due);
  }
}

/** Messages after the system messages of a request, which has none as a rule. */
function after(system: readonly Message[], messages: readonly Message[]): readonly Message[] {
  return system.length === 0 ? messages : [...system, ...messages];
}

function sessionMoved(turns: number): TurnError {
  return new TurnError('session_busy', `The session has ${turns} turns by now.`, { retryAfter: 1 });
}
