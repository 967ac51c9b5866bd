import type { IdSource, PluginContext, Principal } from '@plugboard/kernel';
import { type Account, type Approval, type ApprovalDecision, type Approvals, callerId } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { CurrentAgents } from '../engine/revision/current-agents.js';
import {
  approvalDecided,
  approvalExpired,
  approvalNotFound,
  isOwn,
  type ListedApproval,
  shownApproval,
} from './pending/approval.js';
import { ApprovalRecords } from './pending/approval-records.js';
import { reserveIn } from './store/session-storage.js';

/** What callers do with tool calls that wait, outside of turns. */
export class ApprovalOperations implements Approvals {
  readonly #ids: IdSource;
  readonly #agents: CurrentAgents;
  readonly #records: ApprovalRecords;

  constructor(
    @inject(CONTEXT) { ids }: PluginContext,
    @inject(CurrentAgents) agents: CurrentAgents,
    @inject(ApprovalRecords) records: ApprovalRecords,
  ) {
    this.#ids = ids;
    this.#agents = agents;
    this.#records = records;
  }

  async list(page: Parameters<Approvals['list']>[0], principal: Principal, account: Account): Promise<readonly Approval[]> {
    const { project, agents, scopes } = principal;
    const caller = scopes.includes('approve') ? undefined : callerId(principal);
    if (!scopes.includes('approve') && (caller === undefined || !scopes.includes('chat'))) return [];
    const records = this.#records;
    if (page.after !== undefined) visible(await records.find(project, page.after), page.after, principal);
    const reserve = reserveIn(account);
    const found = await records.waiting(project, { ...page, agents, caller, reserve });
    return found.map((approval) => this.#shown(approval));
  }

  async decide(
    id: string,
    { approve, reason }: Omit<ApprovalDecision, 'id'>,
    principal: Principal,
    account: Account,
  ): Promise<Approval> {
    const records = this.#records;
    const [found] = await records.get(principal.project, [id], account);
    const approval = await records.expire(visible(found, id, principal), account);
    if (approval.decision?.by === 'expired') throw approvalExpired(id);
    if (approval.state !== 'waiting') throw approvalDecided(approval);
    const decision = { approve, reason, by: 'person', nonce: this.#ids.base62(8) } as const;
    const decided = await records.decide(approval, decision, account, principal);
    if (decided.decision?.nonce !== decision.nonce) throw approvalDecided(decided);
    return this.#shown(decided);
  }

  /** An agent that is gone shows nothing. */
  #shown(approval: ListedApproval): Approval {
    const agent = this.#agents.revision.directory.named(approval.session.agent);
    return shownApproval(approval, agent?.toolVisibility ?? 'none');
  }
}

/**
 * An approval that the principal may list and decide: by its scope, or because it began the turn.
 * @throws TurnError `approval_not_found` for any other.
 */
function visible<T extends ListedApproval>(approval: T | undefined, id: string, principal: Principal): T {
  const { agents, scopes } = principal;
  const isHidden = !approval || agents?.includes(approval.session.agent) === false;
  const mayDecide = !isHidden && (scopes.includes('approve') || (scopes.includes('chat') && isOwn(approval, principal)));
  if (!mayDecide) throw approvalNotFound(id);
  return approval;
}
