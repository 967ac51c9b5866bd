import type { AgentEvent, IdSource, Message, Principal } from '@plugboard/kernel';
import {
  type ApprovalChange,
  callerId,
  openToolCalls,
  type Target,
  type TurnApproval,
  type TurnText,
} from '@plugboard/kernel/contracts';
import { digestOf } from '../../engine/diagnostics/audit-fields.js';
import { type ToolOutcome, toolError } from '../../engine/tools/run-tool.js';
import { type AskedCall, NOTHING_SPENT, type Opening, type PendingCalls, type Spent } from '../../engine/turn/pending-calls.js';
import { approvalIdOf, encodeApproval, type NewApproval, newCode, settledApproval, storedPrincipal } from './approval.js';
import type { ApprovalRecords } from './approval-records.js';
import { ApprovedCall } from './approved-call.js';
import { reasonWithoutPerson } from './denial.js';
import { approvalNotice, deniedNotice, keptNotice } from './notice.js';
import { withLead, withResults } from './results.js';
import { NOTHING_OPEN, type SettledCalls } from './settled-calls.js';

/** Why a call cannot wait, for the model. */
const NO_SESSION = 'The call needs the approval of a person, and can only wait for it in a session. It did not run.';
const NO_IDENTITY =
  'The call needs the approval of a person. It did not run, because its caller has no identity: the token has no subject.';

interface PendingCallsOptions {
  readonly ids: IdSource;
  readonly principal: Principal;
  readonly visibility: Target['toolVisibility'];
  readonly params: Readonly<Record<string, unknown>>;
  /** Absent without a session, in which calls could wait. */
  readonly records?: ApprovalRecords | undefined;
  /** What has become of the calls before the turn. */
  readonly calls?: SettledCalls;
}

/**
 * The calls of one conversation that outlive their turn.
 *
 * 1. Before the first step, the loop asks for the `opening`: what has become of the calls that were
 *    open, and which of them run now.
 * 2. Calls of the turn that need a person `ask`. The turn then ends with the `closing`.
 * 3. The conversation stores what `commit` returns: the messages with the results in their places,
 *    and the calls that wait now.
 *
 * An interceptor may run the loop several times; the calls are the same ones each time.
 */
export class OpenCalls implements PendingCalls {
  /** What the turns before have used of the agent's limits, if this one goes on. */
  readonly spent: Spent;
  readonly #options: PendingCallsOptions;
  readonly #settled: SettledCalls;
  readonly #approved: readonly ApprovedCall[];
  readonly #approvedIds: ReadonlySet<string>;
  /** The calls that wait now. */
  readonly #asked: NewApproval[] = [];
  /** Calls and results that readers have received. */
  readonly #reported = new Set<string>();
  #turnId = '';
  #using: Spent = NOTHING_SPENT;

  constructor(options: PendingCallsOptions) {
    const { records, calls = NOTHING_OPEN } = options;
    this.#options = options;
    this.#settled = calls;
    this.spent = calls.spent;
    this.#approved = records
      ? calls.approved.map((one) => new ApprovedCall(one, records, (changed) => this.#wait({ ...one, changed })))
      : [];
    this.#approvedIds = new Set(calls.approved.map(({ call }) => call.id));
  }

  /** What the loop begins with. */
  get opening(): Opening {
    const { waiting, owed, denied, isBlocked } = this.#settled;
    const { visibility } = this.#options;
    if (isBlocked) {
      const text = [approvalNotice(waiting, visibility), keptNotice(owed)].filter((one) => one !== '').join('\n\n');
      return { events: [...waiting.map(approvalEvent), notice(text)], isOver: true, calls: [] };
    }
    const unasked = denied.flatMap(({ call, decision }) => {
      const why = reasonWithoutPerson(decision);
      return why === undefined ? [] : [{ call, why }];
    });
    const events = unasked.length === 0 ? [] : [notice(deniedNotice(unasked, visibility))];
    return { events, isOver: false, calls: this.#approved.map(({ call }) => call) };
  }

  /** The server's text about the calls that wait now; undefined if none does. */
  get closing(): TurnText | undefined {
    return this.#asked.length === 0 ? undefined : notice(approvalNotice(this.#asked, this.#options.visibility));
  }

  /** Whether calls of the turn can wait. */
  get canWait(): boolean {
    return this.refusal === undefined;
  }

  /** Why no call of this turn can wait, as the result of the call. */
  get refusal(): ToolOutcome | undefined {
    if (!this.#options.records) return toolError(NO_SESSION);
    return callerId(this.#options.principal) === undefined ? toolError(NO_IDENTITY) : undefined;
  }

  /** A step makes calls. @param using what the turn has used with them. */
  beginStep(turnId: string, using: Spent): void {
    this.#turnId = turnId;
    this.#using = using;
  }

  /** Lets a call wait for a person. @returns its result if it cannot wait. */
  ask({ own: { call, index }, tool, complete }: AskedCall): ToolOutcome | TurnApproval {
    const { principal } = this.#options;
    return (
      this.refusal ??
      this.#wait({
        id: approvalIdOf(call.id),
        call: { ...call, arguments: complete, tool: { entry: tool.entry, name: tool.tool.name } },
        schema: digestOf(tool.tool.inputSchema),
        turnId: this.#turnId,
        index,
        caller: callerId(principal) ?? '',
        principal: storedPrincipal(principal),
        spent: this.#using,
      })
    );
  }

  /**
   * Leaves out what readers know of approved calls: a turn that is run again reports them again.
   */
  reportedOnce(batch: readonly AgentEvent[]): readonly AgentEvent[] {
    if (this.#approvedIds.size === 0) return batch;
    return batch.filter((event) => {
      const isCall = event.type === 'tool-call' || event.type === 'tool-result';
      if (!isCall || !this.#approvedIds.has(event.id)) return true;
      const known = `${event.type} ${event.id}`;
      return !this.#reported.has(known) && this.#reported.add(known);
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
    const waiting = this.#settled.isBlocked ? this.#settled.waiting : this.#asked;
    const content = approvalNotice(waiting, this.#options.visibility);
    return content === '' ? answer : [...answer, { role: 'assistant', content }];
  }

  /**
   * What the conversation stores of the turn.
   *
   * @param added the new messages of the request, with places for the results of approved calls.
   * @param asking the turn in which calls are asked for, when, and how long they wait.
   */
  commit(
    added: readonly Message[],
    answer: readonly Message[],
    asking: { readonly turn: number; readonly createdAt: number; readonly expiresAt: number },
  ) {
    const { isBlocked, approved, denied } = this.#settled;
    if (isBlocked) return { messages: withResults(added, answer, [], NONE), asked: [], approvals: [] };
    const open = new Set([...openToolCalls(answer), ...this.#approvedIds]);
    const { params } = this.#options;
    // The first call alone keeps the parameters of the turn (S-69).
    const waiting = this.#asked.filter(({ call }) => open.has(call.id));
    const asked = waiting.map((one, at) => ({ ...one, ...asking, params: at === 0 ? params : undefined }));
    const again = new Set(asked.map(({ call }) => call.id));
    const outcomes = this.#approved.flatMap((one) => (one.outcome ? [[one.call.call.id, one.outcome] as const] : []));
    const settled = [...approved, ...denied].filter(({ call }) => !again.has(call.id)).map(settledApproval);
    const approvals: readonly ApprovalChange[] = [...asked, ...settled].map(encodeApproval);
    return { messages: withResults(added, answer, outcomes, again), asked, approvals };
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

/** The event of a call that waits, with the arguments that would run. */
function approvalEvent({ id, code, call, changed }: Pick<NewApproval, 'id' | 'code' | 'call' | 'changed'>): TurnApproval {
  return { type: 'approval', id, code, call: { ...call, arguments: changed ?? call.arguments } };
}

function notice(text: string): TurnText {
  return { type: 'text', text, isNotice: true };
}
