import type { TurnApproval } from '@plugboard/kernel/contracts';
import { digestOf } from '../../engine/diagnostics/audit-fields.js';
import { Postponed, type ToolOutcome } from '../../engine/tools/run-tool.js';
import type { CallRun, OwnedCall, ServerCall } from '../../engine/tools/tool-runner.js';
import type { AgentTool } from '../../engine/tools/toolbox.js';
import { type Approval, principalOf } from './approval.js';
import type { ApprovalRecords } from './approval-records.js';
import { changedTool, UNKNOWN_EFFECT } from './denial.js';

type Result = ToolOutcome | TurnApproval;

/**
 * A call of an earlier turn that a person approved. It runs once: its state is stored before and
 * after it, and an interceptor that runs the turn several times gets the same result each time.
 */
export class ApprovedCall implements OwnedCall {
  readonly turnId: string;
  readonly principal;
  readonly shown: string;
  readonly #records: ApprovalRecords;
  readonly #onChanged: (changed: string) => TurnApproval;
  #approval: Approval;
  #running: Promise<Result> | undefined;
  #outcome: ToolOutcome | undefined;

  /** @param onChanged lets the call wait again, with the other arguments that would run. */
  constructor(approval: Approval, records: ApprovalRecords, onChanged: (changed: string) => TurnApproval) {
    this.turnId = approval.turnId;
    this.principal = principalOf(approval);
    this.shown = approval.changed ?? approval.call.arguments;
    this.#approval = approval;
    this.#records = records;
    this.#onChanged = onChanged;
  }

  /** The result, once there is one. */
  get outcome(): ToolOutcome | undefined {
    return this.#outcome;
  }

  /** The call for the loop. */
  get call(): ServerCall {
    const { call, id, index } = this.#approval;
    return { call: { ...call, approval: id }, index, owned: this };
  }

  settle(tool: AgentTool | undefined, run: CallRun): Promise<Result> {
    this.#running ??= this.#settle(tool, run).catch((error: unknown) => {
      this.#running = undefined; // it was cut off: its effect decides
      throw error;
    });
    return this.#running;
  }

  async #settle(tool: AgentTool | undefined, run: CallRun): Promise<Result> {
    const outcome = (await this.#begin(tool)) ?? (await run());
    if (outcome instanceof Postponed) return this.#onChanged(outcome.input);
    this.#outcome = outcome;
    if (this.#approval.state !== 'ended') await this.#records.end(this.#approval, outcome);
    this.#approval = { ...this.#approval, state: 'ended', outcome };
    return outcome;
  }

  /** Returns the result of the call if it must not run. */
  async #begin(tool: AgentTool | undefined): Promise<ToolOutcome | undefined> {
    const { state, outcome, schema, call } = this.#approval;
    if (state === 'ended') return outcome ?? UNKNOWN_EFFECT;
    if (!tool || digestOf(tool.tool.inputSchema) !== schema) return changedTool(`${call.tool.entry}/${call.tool.name}`);
    if (state === 'started') return tool.effect === 'write' ? UNKNOWN_EFFECT : undefined;
    const started = await this.#records.start(this.#approval);
    if (!started) return UNKNOWN_EFFECT; // somebody else runs it
    this.#approval = started;
    return undefined;
  }
}
