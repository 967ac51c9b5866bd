import type { AgentEvent, IdSource, Message, Turn } from '@plugboard/kernel';
import { callerId, OPEN, openToolCalls, type TurnApproval, type TurnText } from '@plugboard/kernel/contracts';
import { digestOf } from '../../engine/diagnostics/log-fields.js';
import type { Agent } from '../../engine/directory/agent.js';
import type { Directory } from '../../engine/directory/directory.js';
import type { Postponed, WaitingChild } from '../../engine/tools/intercept-tool.js';
import { type ToolOutcome, toolError } from '../../engine/tools/run-tool.js';
import { completeArguments } from '../../engine/tools/tool-arguments.js';
import type { CallJournal, ServerCall } from '../../engine/tools/tool-runner.js';
import type { AgentTool } from '../../engine/tools/toolbox.js';
import type { ParentCall } from '../../engine/turn/parent-call.js';
import { NOTHING_SPENT, type Opening, type PendingCalls, type Spent } from '../../engine/turn/pending-calls.js';
import { type ApprovalRecord, approvalIdOf, encodeApproval, type NewApproval, newCode, settledApproval } from './approval.js';
import type { ApprovalRecords } from './approval-records.js';
import { type ApprovedCall, approvedCall, type CallStates } from './approved-call.js';
import { askAgain, asShown } from './child-state.js';
import { reasonWithoutPerson } from './denial.js';
import { approvalNotice, deniedNotice, keptNotice } from './notice.js';
import { withLead, withResults } from './results.js';
import { NOTHING_OPEN, type SettledCalls } from './settle-open-calls.js';

/** Why a call cannot wait, for the model. */
const NO_SESSION = 'The call needs the approval of a person, and can only wait for it in a session. It did not run.';
const NO_IDENTITY =
  'The call needs the approval of a person. It did not run, because its caller has no identity: the token has no subject.';

interface OpenCallsOptions {
  readonly ids: IdSource;
  readonly agent: Agent;
  /** As it was loaded, before its interceptors. */
  readonly turn: Turn;
  /** Absent without a session, in which calls could wait. */
  readonly records?: ApprovalRecords;
  /** The call that started the turn: it waits instead. */
  readonly parent?: ParentCall | undefined;
  /** Knows which agents may need approval. */
  readonly directory?: Pick<Directory, 'mayAsk'>;
  /** What has become of the calls before the turn. */
  readonly calls?: SettledCalls;
  /** Keeps the calls of the turn that may write. */
  readonly journal?: CallJournal | undefined;
}

/**
 * The calls of a conversation that outlive their turn, for their turn: its conversation stores what
 * `commit` returns, the messages with the results in their places, and the calls that wait now.
 */
export class OpenCalls implements PendingCalls {
  readonly spent: Spent;
  readonly #options: OpenCallsOptions;
  readonly #settled: SettledCalls;
  readonly #approved: readonly ApprovedCall[];
  /** The calls that wait now. */
  readonly #asked: NewApproval[] = [];
  /** Calls and results that readers have received. */
  #reported: Set<string> | undefined;
  #using: Spent = NOTHING_SPENT;

  constructor(options: OpenCallsOptions) {
    const { records = UNSTORED, calls = NOTHING_OPEN } = options;
    this.#options = options;
    this.#settled = calls;
    this.spent = calls.spent;
    const approved = calls.approved.map((one) => approvedCall(one, records, (postponed) => this.#waitAgain(one, postponed)));
    this.#approved = [...approved, ...(calls.again ?? []).map((one) => askAgain(one, () => this.#wait(one)))];
  }

  get canWait(): boolean {
    return this.#refusal === undefined;
  }

  get journal(): CallJournal | undefined {
    return this.#options.journal;
  }

  get opening(): Opening {
    const { waiting, owed, denied, isBlocked } = this.#settled;
    const { toolVisibility: visibility } = this.#options.agent;
    if (isBlocked) {
      const text = [approvalNotice(waiting, visibility), keptNotice(owed)].filter((one) => one !== '').join('\n\n');
      return { events: [...waiting.map(approvalEvent), notice(text)], isOver: true, calls: [] };
    }
    const unasked = denied.flatMap(({ call, decision }) => {
      const why = decision && reasonWithoutPerson(decision);
      return why === undefined ? [] : [{ call, why }];
    });
    const events = unasked.length === 0 ? [] : [notice(deniedNotice(unasked, visibility))];
    return { events, isOver: false, calls: this.#approved };
  }

  closing(callIds: readonly string[]): TurnText | undefined {
    const waiting = this.#asked.filter(({ call }) => callIds.includes(call.id));
    return waiting.length === 0 ? undefined : notice(approvalNotice(waiting, this.#options.agent.toolVisibility));
  }

  mayWait(tools: Iterable<AgentTool>): boolean {
    const { agent, directory } = this.#options;
    return this.canWait && [...tools].some((tool) => agent.approves(tool) || (tool.asks && directory?.mayAsk(tool.asks.agent)));
  }

  /** Why no call of this turn can wait, as the result of the call. */
  get #refusal(): ToolOutcome | undefined {
    const { records, parent } = this.#options;
    if (!records && !parent?.options.canWait) return toolError(NO_SESSION);
    return callerId(this.#options.turn.principal) === undefined ? toolError(NO_IDENTITY) : undefined;
  }

  beginStep(using: Spent): void {
    this.#using = using;
  }

  /** A person decides about valid calls of these tools: mistakes of the model are not shown. */
  admit(own: ServerCall, tool: AgentTool | undefined): ToolOutcome | TurnApproval | undefined {
    if (!tool || !this.#options.agent.approves(tool)) return undefined;
    const checked = tool.check(own.call.arguments);
    if ('fault' in checked) return undefined;
    return this.postpone(own, tool, completeArguments(checked.input, tool.tool.inputSchema));
  }

  postpone({ call, index }: ServerCall, tool: AgentTool, complete: string, child?: WaitingChild): ToolOutcome | TurnApproval {
    const { turn } = this.#options;
    const { principal } = turn;
    const own = { ...call, arguments: complete, tool: { entry: tool.entry, name: tool.tool.name } };
    return (
      this.#refusal ??
      this.#wait({
        id: approvalIdOf(call.id),
        ...asShown(own, child),
        schema: digestOf(tool.tool.inputSchema),
        turnId: turn.id,
        index,
        caller: callerId(principal) ?? '',
        principal: principal === OPEN ? null : principal,
        spent: { ...this.#using, ...child?.spent },
      })
    );
  }

  #waitAgain(approval: ApprovalRecord, { input, child }: Postponed): TurnApproval {
    const { call } = approval.child ?? approval;
    if (!child) return this.#wait({ ...approval, changed: input });
    return this.#wait({ ...approval, ...asShown(call, child), spent: { ...approval.spent, ...child.spent } });
  }

  reportedOnce(batch: readonly AgentEvent[]): readonly AgentEvent[] {
    if (this.#approved.length === 0) return batch;
    this.#reported ??= new Set();
    const reported = this.#reported;
    return batch.filter((event) => {
      const isCall = event.type === 'tool-call' || event.type === 'tool-result';
      if (!isCall || !this.#approved.some(({ call }) => call.id === event.id)) return true;
      const known = `${event.type} ${event.id}`;
      return !reported.has(known) && reported.add(known);
    });
  }

  withResults(conversation: readonly Message[], results: readonly Message[]): readonly Message[] {
    return withLead(conversation, results);
  }

  /** Whether the turn adds nothing to the conversation: decisions are stored as they are taken. */
  addsNothing(added: readonly Message[]): boolean {
    return this.#settled.isBlocked && added.length === 0;
  }

  /** The answer as its reader sees it: with the server's text about the calls that wait. */
  withNotice(answer: readonly Message[]): readonly Message[] {
    const waiting = this.#settled.isBlocked ? this.#settled.waiting : this.#waitingIn(answer);
    const content = approvalNotice(waiting, this.#options.agent.toolVisibility);
    return content === '' ? answer : [...answer, { role: 'assistant', content }];
  }

  /**
   * What the conversation stores of the turn.
   *
   * @param added the new messages of the request, with places for the results of approved calls.
   * @param turn the number of the turn.
   */
  commit(added: readonly Message[], answer: readonly Message[], turn: number) {
    const { isBlocked, approved, denied } = this.#settled;
    if (isBlocked) return { messages: withResults(added, answer, [], NONE), asked: [], approvals: undefined };
    const { records, agent, turn: loaded } = this.#options;
    const times = records?.timesOf(agent.approvalExpires);
    const waiting = times ? this.#waitingIn(answer).map((one) => ({ ...one, ...times, turn })) : [];
    // The first call alone keeps the parameters of the turn (S-69).
    const asked = waiting.map((one, at) => ({ ...one, params: at === 0 ? loaded.params : undefined }));
    const again = new Set(asked.map(({ call }) => call.id));
    const settled = [...approved, ...denied].filter(({ call }) => !again.has(call.id)).map(settledApproval);
    const approvals = [...asked, ...settled].map(encodeApproval);
    return {
      messages: withResults(added, answer, this.#outcomes, again),
      asked,
      approvals: approvals.length > 0 ? approvals : undefined,
    };
  }

  /**
   * The calls of a child that wait now, and its messages with the results of the others.
   * @param results those of earlier calls, or places for them.
   */
  waiting(results: readonly Message[], answer: readonly Message[]) {
    const calls = this.#waitingIn(answer);
    const open = new Set(calls.map(({ call }) => call.id));
    const spent = this.#using === NOTHING_SPENT ? this.spent : this.#using;
    return { calls, spent, messages: withResults(results, answer, this.#outcomes, open) };
  }

  get #outcomes(): readonly (readonly [string, ToolOutcome])[] {
    return this.#approved.flatMap(({ call, outcome }) => {
      const result = outcome();
      return result ? [[call.id, result] as const] : [];
    });
  }

  /** The calls that wait, without those of a run that an interceptor dropped. */
  #waitingIn(answer: readonly Message[]): readonly NewApproval[] {
    const open = new Set([...openToolCalls(answer), ...this.#approved.map(({ call }) => call.id)]);
    return this.#asked.filter(({ call }) => open.has(call.id));
  }

  #wait(asked: Omit<NewApproval, 'state' | 'code'>): TurnApproval {
    const taken = new Set(this.#asked.map(({ code }) => code));
    let code = newCode(this.#options.ids);
    while (taken.has(code)) code = newCode(this.#options.ids);
    const approval: NewApproval = { ...asked, state: 'waiting', code, decision: undefined };
    this.#asked.push(approval);
    return approvalEvent(approval);
  }
}

const NONE: ReadonlySet<string> = new Set();

/** The calls of a child are kept by the call that started it. */
const UNSTORED: CallStates = {
  replace: async (approval, change) => ({ ...approval, ...change }),
  isOld: () => false,
};

/** The event of a call that waits, with the arguments that would run. */
function approvalEvent({ id, code, call, changed }: Pick<NewApproval, 'id' | 'code' | 'call' | 'changed'>): TurnApproval {
  return { type: 'approval', id, code, call: { ...call, arguments: changed ?? call.arguments } };
}

function notice(text: string): TurnText {
  return { type: 'text', text, isNotice: true };
}
