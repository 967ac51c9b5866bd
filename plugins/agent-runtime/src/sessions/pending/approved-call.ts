import { OPEN, type TurnApproval } from '@plugboard/kernel/contracts';
import { digestOf } from '../../engine/diagnostics/log-fields.js';
import { Postponed } from '../../engine/tools/intercept-tool.js';
import { type ToolOutcome, toolError } from '../../engine/tools/run-tool.js';
import type { OwnedCall, ServerCall } from '../../engine/tools/tool-runner.js';
import type { AgentTool } from '../../engine/tools/toolbox.js';
import type { ApprovalRecord } from './approval.js';
import type { ApprovalRecords } from './approval-records.js';

/** A call with effects that began, and was cut off. */
const UNKNOWN_EFFECT: ToolOutcome = {
  ...toolError('The call began to run, but was interrupted. Whether it took effect is unknown, and it was not run again.'),
  effect: 'unknown',
};

/** Keeps where calls stand. */
export type CallStates = Pick<ApprovalRecords, 'replace' | 'isOld'>;

/** A call of an earlier turn that a person approved, or that a dead process began. */
export interface ApprovedCall extends ServerCall {
  /** Its result, once there is one. */
  outcome(): ToolOutcome | undefined;
}

/**
 * Makes the call of an approval for the loop. It runs once: its state is stored before and after
 * it, and an interceptor that runs the turn several times gets the same result each time.
 *
 * @param onPostponed lets the call wait again: with other arguments that would run, or because the
 *   turn that it started waits again.
 */
export function approvedCall(
  approved: ApprovalRecord,
  records: CallStates,
  onPostponed: (postponed: Postponed) => TurnApproval,
): ApprovedCall {
  let current = approved;
  let running: Promise<ToolOutcome | TurnApproval> | undefined;

  /** Returns the result of the call if it must not run, or what is known if it has begun. */
  const begin = async (tool: AgentTool | undefined): Promise<{ readonly outcome?: ToolOutcome; readonly lost?: ToolOutcome }> => {
    const { state, outcome = UNKNOWN_EFFECT, schema, call } = current;
    if (state === 'ended') return { outcome };
    const hasBegun = state === 'started';
    const isSame = tool && digestOf(tool.tool.inputSchema) === schema;
    if (!isSame) return { outcome: hasBegun ? UNKNOWN_EFFECT : changedTool(call.tool) };
    const isForgotten = tool.effect === 'write' && !tool.tool.verify && records.isOld(current);
    if (hasBegun) return isForgotten ? { outcome: UNKNOWN_EFFECT } : { lost: UNKNOWN_EFFECT };
    const started = await records.replace(current, { state: 'started' });
    if (!started) return { outcome: UNKNOWN_EFFECT }; // somebody else runs it
    current = started;
    return {};
  };

  const run: OwnedCall['settle'] = async (tool, runTool) => {
    const known = await begin(tool);
    const outcome = known.outcome ?? (await runTool(known.lost));
    if (outcome instanceof Postponed) return onPostponed(outcome);
    const before = current;
    current = { ...before, state: 'ended', outcome };
    if (before.state !== 'ended') await records.replace(before, { state: 'ended', outcome });
    return outcome;
  };

  const { begun, child, decision } = approved;
  const { call = approved.call } = child ?? {};
  return {
    call: begun ? { ...call, resumed: true } : { ...call, approval: approved.id },
    index: approved.index,
    owned: {
      turnId: approved.turnId,
      principal: approved.principal ?? OPEN,
      shown: begun ? undefined : (approved.changed ?? call.arguments),
      resumed: child && { state: child.state, decision },
      settle(tool, runTool) {
        running ??= run(tool, runTool).catch((error: unknown) => {
          running = undefined; // it was cut off: its effect decides
          throw error;
        });
        return running;
      },
    },
    outcome: () => (current.state === 'ended' ? current.outcome : undefined),
  };
}

/** A call that was approved, but cannot run as it was shown. */
function changedTool({ entry, name }: ApprovalRecord['call']['tool']): ToolOutcome {
  return toolError(
    `The call was approved but did not run: the tool ${entry}/${name} has changed since, or is no longer available.`,
  );
}
