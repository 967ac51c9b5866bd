import type { ToolMessage, TurnRecord } from '@plugboard/kernel/contracts';
import { NOTHING_SPENT, type Spent } from '../../engine/turn/pending-calls.js';
import { type Approval, approvalIdOf } from './approval.js';
import { DENIED_IN_COPY, denialOf, deniedMessage } from './denial.js';

/** What has become of the calls that were open before a turn. */
export interface SettledCalls {
  /** Calls that nobody has decided about. Nothing runs until somebody has. */
  readonly waiting: readonly Approval[];
  /** Ids of calls whose results the caller owes. Decisions wait for them. */
  readonly owed: readonly string[];
  /** Calls that run before the first model call. */
  readonly approved: readonly Approval[];
  readonly denied: readonly Approval[];
  /** Results of the calls that do not run. */
  readonly closing: readonly ToolMessage[];
  /** For the record of the turn: the decisions that take effect. */
  readonly decisions: NonNullable<TurnRecord['decisions']>;
  /** Whether nothing runs yet: a person or the caller has to say something first. */
  readonly isBlocked: boolean;
  /** Parameters and used limits of the turn that asked, if this one goes on with it. */
  readonly params: Readonly<Record<string, unknown>> | undefined;
  readonly spent: Spent;
}

/** @param copied ids of calls that were copied from another session, and do not run. */
export function settledCalls(
  settled: readonly Approval[],
  copied: readonly string[],
  owed: readonly string[],
  overtakes: boolean,
): SettledCalls {
  const waiting = settled.filter(({ state }) => state === 'waiting');
  const approved = settled.filter(({ state }) => state !== 'waiting' && state !== 'denied');
  const denied = settled.filter(({ state }) => state === 'denied');
  const isBlocked = waiting.length + owed.length > 0;
  return {
    waiting,
    owed,
    approved,
    denied,
    closing: [
      ...denied.map(({ call, decision }) => deniedMessage(call.id, denialOf(decision))),
      ...copied.map((id) => deniedMessage(id, DENIED_IN_COPY)),
    ],
    decisions: isBlocked ? [] : [...approved.map(decisionOf), ...denied.map(decisionOf), ...copied.map(decisionInCopy)],
    isBlocked,
    params: overtakes ? undefined : settled.find(({ params }) => params !== undefined)?.params,
    spent: overtakes ? NOTHING_SPENT : (settled[0]?.spent ?? NOTHING_SPENT),
  };
}

/** A conversation without open calls. */
export const NOTHING_OPEN = settledCalls([], [], [], false);

function decisionOf({ id, call, decision }: Approval): SettledCalls['decisions'][number] {
  const { approve = false, reason, by = 'overtaken' } = decision ?? {};
  return { approval: id, call: call.id, approve, reason, by };
}

function decisionInCopy(call: string): SettledCalls['decisions'][number] {
  return { approval: approvalIdOf(call), call, approve: false, by: 'copied' };
}
