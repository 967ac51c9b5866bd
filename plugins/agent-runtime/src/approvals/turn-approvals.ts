import type { AgentEvent, IdSource, Principal } from '@plugboard/kernel';
import { callerId, type Target, type TurnApproval, type TurnText } from '@plugboard/kernel/contracts';
import { type ToolOutcome, toolError } from '../tools/run-tool.js';
import type { ApprovalDesk, ApprovedCall, ServerCall } from '../tools/tool-runner.js';
import type { AgentTool } from '../tools/toolbox.js';
import {
  type Approval,
  approvalIdOf,
  digestOf,
  type NewApproval,
  NOTHING_SPENT,
  newCode,
  principalOf,
  type Spent,
  storedPrincipal,
} from './approval.js';
import type { ApprovalRecords } from './approval-records.js';
import { changedTool, reasonWithoutPerson, UNKNOWN_EFFECT } from './denial.js';
import { approvalNotice, deniedNotice } from './notice.js';

/** Why a call cannot wait, for the model. */
const NO_SESSION = 'The call needs the approval of a person, and can only wait for it in a session. It did not run.';
const NO_IDENTITY =
  'The call needs the approval of a person. It did not run, because its caller has no identity: the token has no subject.';

const NO_OUTCOMES: ReadonlyMap<string, ToolOutcome> = new Map();

interface TurnApprovalsOptions {
  readonly ids: IdSource;
  readonly principal: Principal;
  readonly visibility: Target['toolVisibility'];
  readonly params: Readonly<Record<string, unknown>>;
  /** Absent without a session. */
  readonly records?: ApprovalRecords | undefined;
  /** Calls of the session that still wait. */
  readonly waiting?: readonly Approval[];
  /** Ids of calls whose results the caller owes before decisions take effect. */
  readonly results?: readonly string[];
  /** Calls of the session that were approved. They run first. */
  readonly approved?: readonly Approval[];
  /** Calls of the session that were denied. */
  readonly denied?: readonly Approval[];
  readonly spent?: Spent;
}

/** What one turn does with calls that need approval: those before it, and those that it makes. */
export class TurnApprovals implements ApprovalDesk {
  readonly waiting: readonly Approval[];
  readonly approved: readonly Approval[];
  /** What the turns before have used of the agent's limits, if this one goes on. */
  readonly spent: Spent;
  readonly visibility: Target['toolVisibility'];
  /** The calls of this turn that wait. */
  readonly asked: NewApproval[] = [];
  readonly #options: TurnApprovalsOptions;
  #outcomes: Map<string, ToolOutcome> | undefined;
  #calls: readonly ServerCall[] | undefined;
  readonly #reported = new Set<string>();
  #turnId = '';
  #using: Spent = NOTHING_SPENT;

  constructor(options: TurnApprovalsOptions) {
    this.#options = options;
    this.waiting = options.waiting ?? [];
    this.approved = options.approved ?? [];
    this.spent = options.spent ?? NOTHING_SPENT;
    this.visibility = options.visibility;
  }

  /** Results of the approved calls, by the ids of the calls. */
  get outcomes(): ReadonlyMap<string, ToolOutcome> {
    return this.#outcomes ?? NO_OUTCOMES;
  }

  /** Whether nothing of the session runs yet. */
  get isBlocked(): boolean {
    return this.waiting.length + (this.#options.results?.length ?? 0) > 0;
  }

  /** The events of a turn in which nothing runs: what waits, and for whom. */
  get blocked(): readonly AgentEvent[] {
    const { results = [] } = this.#options;
    const texts = [
      approvalNotice(this.waiting, this.visibility),
      results.length === 0
        ? ''
        : `The decision is kept, and takes effect with the results of these calls: ${results.join(', ')}.`,
    ];
    const text = texts.filter((one) => one !== '').join('\n\n');
    return [...this.waiting.map(approvalEvent), { type: 'text', text, isNotice: true }];
  }

  /** The server's text about calls that were denied without a person, if there are any. */
  get note(): TurnText | undefined {
    if (this.isBlocked) return undefined;
    const denied = (this.#options.denied ?? []).flatMap(({ call, decision }) => {
      const why = reasonWithoutPerson(decision);
      return why === undefined ? [] : [{ call, why }];
    });
    return denied.length === 0 ? undefined : { type: 'text', text: deniedNotice(denied, this.visibility), isNotice: true };
  }

  /** A step makes calls. @param using what the turn has used with them. */
  beginStep(turnId: string, using: Spent): void {
    this.#turnId = turnId;
    this.#using = using;
  }

  /** Why no call of this turn can wait, as the result of the call. */
  get refusal(): ToolOutcome | undefined {
    if (!this.#options.records) return toolError(NO_SESSION);
    return callerId(this.#options.principal) === undefined ? toolError(NO_IDENTITY) : undefined;
  }

  ask({ call, index }: ServerCall, tool: AgentTool): TurnApproval {
    const { principal, params } = this.#options;
    const approval: NewApproval = {
      id: approvalIdOf(call.id),
      state: 'waiting',
      code: this.#newCode(),
      call: { ...call, tool: { entry: tool.entry, name: tool.tool.name } },
      schema: digestOf(tool.tool.inputSchema),
      turnId: this.#turnId,
      index,
      caller: callerId(principal) ?? '',
      principal: storedPrincipal(principal),
      params,
      spent: this.#using,
    };
    this.asked.push(approval);
    return approvalEvent(approval);
  }

  /** The approved calls, to be run before the first model call. */
  get calls(): readonly ServerCall[] {
    const { records } = this.#options;
    if (!records) return [];
    this.#calls ??= this.approved.map((approval) => ({
      call: { ...approval.call, approval: approval.id },
      index: approval.index,
      approved: this.#approvedCall(approval, records),
    }));
    return this.#calls;
  }

  #approvedCall(approval: Approval, records: ApprovalRecords): ApprovedCall {
    let current = approval;
    let running: ReturnType<ApprovedCall['once']> | undefined;
    const { call } = approval;
    const label = `${call.tool.entry}/${call.tool.name}`;
    return {
      turnId: approval.turnId,
      principal: principalOf(approval),
      arguments: approval.changed ?? call.arguments,
      once: (work) => {
        running ??= work().catch((error: unknown) => {
          running = undefined; // it was cut off: its effect decides
          throw error;
        });
        return running;
      },
      askAgain: (changed) => {
        const { id: _, stored: __, decision: ___, ...asked } = approval;
        const again = { ...asked, id: approval.id, state: 'waiting', code: this.#newCode(), changed } as const;
        this.asked.push(again);
        return approvalEvent(again);
      },
      begin: async (tool) => {
        if (current.state === 'ended') return current.outcome ?? UNKNOWN_EFFECT;
        if (!tool || digestOf(tool.tool.inputSchema) !== approval.schema) return changedTool(label);
        if (current.state === 'started') return tool.effect === 'write' ? UNKNOWN_EFFECT : undefined;
        const started = await records.start(current);
        if (!started) return UNKNOWN_EFFECT; // somebody else runs it
        current = started;
        return undefined;
      },
      end: async (outcome) => {
        this.#outcomes ??= new Map();
        this.#outcomes.set(call.id, outcome);
        if (current.state !== 'ended') await records.end(current, outcome);
        current = { ...current, state: 'ended', outcome };
      },
    };
  }

  /**
   * Leaves out what readers know of approved calls: an interceptor may run a turn several times,
   * and each time reports them.
   */
  reportedOnce(batch: readonly AgentEvent[]): readonly AgentEvent[] {
    if (this.approved.length === 0) return batch;
    const ids = new Set(this.approved.map(({ call }) => call.id));
    return batch.filter((event) => {
      const isCall = event.type === 'tool-call' || event.type === 'tool-result';
      if (!isCall || !ids.has(event.id)) return true;
      const known = `${event.type} ${event.id}`;
      return !this.#reported.has(known) && this.#reported.add(known);
    });
  }

  #newCode(): string {
    const taken = new Set(this.asked.map(({ code }) => code));
    let code = newCode(this.#options.ids);
    while (taken.has(code)) code = newCode(this.#options.ids);
    return code;
  }
}

/** The event of a call that waits, with the arguments that would run. */
export function approvalEvent({ id, code, call, changed }: Pick<NewApproval, 'id' | 'code' | 'call' | 'changed'>): TurnApproval {
  return { type: 'approval', id, code, call: { ...call, arguments: changed ?? call.arguments } };
}
