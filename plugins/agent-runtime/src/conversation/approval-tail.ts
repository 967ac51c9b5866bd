import type { Message } from '@plugboard/kernel';
import {
  type ApprovalDecision,
  openToolCalls,
  type SessionId,
  type ToolMessage,
  type TurnRecord,
  textOf,
} from '@plugboard/kernel/contracts';
import { type Approval, approvalIdOf, isOwn, NOTHING_SPENT, type Spent } from '../approvals/approval.js';
import { approvalDecided, approvalNotFound, approvalPending } from '../approvals/approval-errors.js';
import type { ApprovalRecords, OpenApprovals } from '../approvals/approval-records.js';
import { countDecisions, decisionsIn } from '../approvals/decision-lines.js';
import { DENIED_IN_COPY, denialOf, deniedMessage } from '../approvals/denial.js';
import type { TurnContext } from '../lifecycle/turn-context.js';

/** Another caller that tries more codes than this denies what waits. */
const MAX_WRONG_CODES = 10;

/**
 * The open calls at the end of a session that a person decides about, and what a request says about
 * them.
 */
export class ApprovalTail {
  /** Ids of the calls. The caller cannot answer them. */
  readonly callIds: ReadonlySet<string>;
  /** Ids of the other open calls, which the caller answers. */
  readonly openResults: readonly string[];
  /** The messages of the request, without one that only decides. */
  readonly messages: readonly Message[];
  readonly #context: TurnContext;
  readonly #records: ApprovalRecords;
  readonly #open: OpenApprovals;
  /** Undefined if the request decides nothing. */
  readonly #decisions: readonly ApprovalDecision[] | undefined;

  private constructor(
    context: TurnContext,
    open: OpenApprovals,
    history: readonly Message[],
    messages: readonly Message[],
    decisions: readonly ApprovalDecision[] | undefined,
  ) {
    this.#context = context;
    this.#records = context.deps.approvals;
    this.#open = open;
    this.messages = messages;
    this.#decisions = decisions;
    this.callIds = new Set([...open.approvals.map(({ call }) => call.id), ...open.copied]);
    this.openResults = openToolCalls(history).filter((id) => !this.callIds.has(id));
  }

  /**
   * Reads the calls and what the request says about them. Changes nothing, except that calls whose
   * time is over are denied.
   *
   * @throws TurnError `approval_not_found`, `approval_decided`; `approval_pending` if they wait for
   *   another caller.
   */
  static async read(context: TurnContext, session: SessionId, history: readonly Message[]): Promise<ApprovalTail> {
    const { request, deps } = context;
    const { approvals: stored, copied } = await deps.approvals.openIn(session, history);
    const approvals = await Promise.all(stored.map((approval) => deps.approvals.expire(approval)));
    const last = request.messages.at(-1);
    const text = approvals.length > 0 && last?.role === 'user' ? textOf(last.content) : '';
    await assertOwn(context, approvals, text);
    const lines = decisionsIn(text, approvals);
    const items = request.approvals ?? [];
    for (const item of items) await assertDecidable(context, approvals, item);
    const messages = lines ? request.messages.slice(0, -1) : request.messages;
    const decisions = lines || items.length > 0 ? [...items, ...(lines ?? [])] : undefined;
    return new ApprovalTail(context, { approvals, copied }, history, messages, decisions);
  }

  /** Whether the request decides about a call. */
  get decides(): boolean {
    return this.#decisions !== undefined;
  }

  /**
   * Takes the decisions of the request, each once.
   * @param overtakes whether the request goes on with another message: what waits is then denied.
   */
  async settle(overtakes: boolean): Promise<Omit<SettledTail, 'results'>> {
    const { principal } = this.#context.request;
    const settled: Approval[] = [];
    const decisions = new Map(this.#decisions?.toReversed().map((decision) => [decision.id, decision])); // the first one counts
    for (const approval of this.#open.approvals) {
      const decision = decisions.get(approval.id);
      if (decision) {
        const { approve, reason } = decision;
        settled.push(await this.#records.decide(approval, { approve, reason, by: 'person' }, principal));
      } else if (overtakes) settled.push(await this.#records.decide(approval, { approve: false, by: 'overtaken' }, principal));
      else settled.push(approval);
    }
    const denied = settled.filter(({ state }) => state === 'denied');
    return {
      waiting: settled.filter(({ state }) => state === 'waiting'),
      approved: settled.filter(({ state }) => state !== 'waiting' && state !== 'denied'),
      denied,
      closing: [
        ...denied.map(({ call, decision }) => deniedMessage(call.id, denialOf(decision))),
        ...this.#open.copied.map((id) => deniedMessage(id, DENIED_IN_COPY)),
      ],
      copied: this.#open.copied,
      params: overtakes ? undefined : settled.find(({ params }) => params !== undefined)?.params,
      spent: overtakes ? NOTHING_SPENT : (settled[0]?.spent ?? NOTHING_SPENT),
    };
  }
}

/** The open calls of a session after the decisions of a request. */
export interface SettledTail {
  /** Calls that nobody has decided about. Nothing runs until somebody has. */
  readonly waiting: readonly Approval[];
  /** Ids of calls whose results the caller owes. Decisions wait for them. */
  readonly results: readonly string[];
  readonly approved: readonly Approval[];
  readonly denied: readonly Approval[];
  /** Ids of calls that were copied from another session, and do not run. */
  readonly copied: readonly string[];
  /** Results of the calls that do not run. */
  readonly closing: readonly ToolMessage[];
  /** Parameters and used limits of the turn that asked, if this one goes on with it. */
  readonly params: Readonly<Record<string, unknown>> | undefined;
  readonly spent: Spent;
}

/** The tail of a session without open calls. */
export const NO_TAIL: SettledTail = {
  waiting: [],
  results: [],
  approved: [],
  denied: [],
  closing: [],
  copied: [],
  params: undefined,
  spent: NOTHING_SPENT,
};

/** Whether nothing runs yet: a person or the caller has to say something first. */
export function isBlocked({ waiting, results }: Pick<SettledTail, 'waiting' | 'results'>): boolean {
  return waiting.length > 0 || results.length > 0;
}

/** The decisions that take effect, for the record of the turn: none while calls wait. */
export function decisionsOf(tail: SettledTail): NonNullable<TurnRecord['decisions']> {
  if (isBlocked(tail)) return [];
  const { approved, denied, copied } = tail;
  const decided = [...approved, ...denied].map(({ id, call, decision }) => ({
    approval: id,
    call: call.id,
    approve: decision?.approve === true,
    reason: decision?.reason,
    by: decision?.by ?? 'overtaken',
  }));
  return [...decided, ...copied.map((call) => ({ approval: approvalIdOf(call), call, approve: false, by: 'copied' as const }))];
}

/** @throws TurnError if calls wait for another caller, who alone may go on. */
async function assertOwn({ request, deps }: TurnContext, approvals: readonly Approval[], text: string): Promise<void> {
  const foreign = approvals.filter((approval) => approval.state !== 'denied' && !isOwn(approval, request.principal));
  if (foreign.length === 0) return;
  const codes = countDecisions(text);
  if (codes > 0) {
    for (const approval of foreign) {
      if (approval.state !== 'waiting') continue;
      if ((await deps.approvals.countWrongCodes(approval, codes)) < MAX_WRONG_CODES) continue;
      const { session } = approval.stored;
      const current = (await deps.approvals.get(session.project, approval.id)) ?? approval;
      await deps.approvals.decide(current, { approve: false, by: 'guessed' }, request.principal);
    }
  }
  throw approvalPending();
}

/**
 * @throws TurnError `approval_not_found` for a call of another session or caller;
 *   `approval_decided` for one that was decided otherwise.
 */
async function assertDecidable(
  { request, deps }: TurnContext,
  approvals: readonly Approval[],
  item: ApprovalDecision,
): Promise<void> {
  const open = approvals.find(({ id }) => id === item.id);
  const known = open ?? (await deps.approvals.get(request.principal.project, item.id));
  if (!known || !isOwn(known, request.principal)) throw approvalNotFound(item.id);
  // Of a call that was denied without a person, the model is told, whatever this decision says.
  const isOther = open?.decision?.by === 'person' && item.approve !== open.decision.approve;
  if (!open || isOther) throw approvalDecided(known);
}
