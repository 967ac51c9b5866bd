import { setImmediate } from 'node:timers/promises';
import { type Extensions, type PluginContext, type Principal, type SessionStore, SessionStores } from '@plugboard/kernel';
import {
  Account,
  type ApprovalDecision,
  type Approval as ApprovalInfo,
  type ApprovalListPage,
  type Approvals,
  ExpiryClock,
  type StoredApproval,
} from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { CurrentAgents } from '../engine/current-agents.js';
import { type Approval, approvalOf, isOwn, shownApproval } from './pending/approval.js';
import { approvalDecided, approvalExpired, approvalNotFound } from './pending/approval-errors.js';
import { ApprovalRecords } from './pending/approval-records.js';
import { type StoreCall, storeCalls } from './store/store-call.js';

/** Approvals that are read from the store at once, to find those that the caller may see. */
const READ_AT_ONCE = 20;

/** What callers do with tool calls that wait, outside of turns. */
export class ApprovalOperations implements Approvals {
  readonly #context: PluginContext;
  readonly #expiry: ExpiryClock;
  readonly #stores: Extensions<SessionStore>;
  readonly #storeCall: StoreCall;
  readonly #agents: CurrentAgents;
  readonly #records: ApprovalRecords;

  constructor(
    @inject(CONTEXT) context: PluginContext,
    @inject(CurrentAgents) agents: CurrentAgents,
    @inject(ApprovalRecords) records: ApprovalRecords,
  ) {
    this.#records = records;
    this.#context = context;
    this.#expiry = new ExpiryClock(context.clock);
    this.#stores = context.extensions(SessionStores);
    this.#storeCall = storeCalls(context.clock);
    this.#agents = agents;
  }

  async list(
    { limit, order, after }: ApprovalListPage,
    principal: Principal,
    account: Account,
  ): Promise<readonly ApprovalInfo[]> {
    if (!mayDecideAny(principal)) return [];
    if (after !== undefined) await this.#require(after, principal);
    const reserve = (bytes: number) => account.require(Account.costOf(bytes));
    const found: Approval[] = [];
    let last = after;
    while (found.length < limit) {
      const before = account.reserved;
      const page = { limit: READ_AT_ONCE, order, after: last, agents: principal.agents, reserve };
      const stored = await this.#waiting(page, principal);
      const now = this.#expiry.now();
      const visible = stored.map(approvalOf).filter((one) => mayDecide(one, principal) && one.expiresAt > now);
      if (visible.length === 0) account.release(account.reserved - before);
      found.push(...visible);
      last = stored.at(-1)?.id;
      if (stored.length < READ_AT_ONCE) break;
      await setImmediate(); // what was read is counted before more is
      await account.timeSlice();
    }
    return found.slice(0, limit).map((approval) => this.#shown(approval));
  }

  async decide(id: string, { approve, reason }: Omit<ApprovalDecision, 'id'>, principal: Principal): Promise<ApprovalInfo> {
    const records = this.#records;
    const approval = await records.expire(await this.#require(id, principal));
    if (approval.decision?.by === 'expired') throw approvalExpired(id);
    if (approval.state !== 'waiting') throw approvalDecided(approval);
    const decision = { approve, reason, by: 'person', nonce: this.#context.ids.base62(8) } as const;
    const decided = await records.decide(approval, decision, principal);
    if (decided.decision?.nonce !== decision.nonce) throw approvalDecided(decided);
    return this.#shown(decided);
  }

  #waiting(
    page: Parameters<SessionStore['approvals']['waiting']>[1],
    { project }: Principal,
  ): Promise<readonly StoredApproval[]> {
    return this.#storeCall(() => this.#stores.one().approvals.waiting(project, page), 'approvals.waiting');
  }

  /** @throws TurnError `approval_not_found` */
  async #require(id: string, principal: Principal): Promise<Approval> {
    const approval = await this.#records.get(principal.project, id);
    if (!approval || !mayDecide(approval, principal)) throw approvalNotFound(id);
    return approval;
  }

  /** An agent that is gone shows nothing. */
  #shown(approval: Approval): ApprovalInfo {
    const agent = this.#agents.revision.directory.named(approval.stored.session.agent);
    return shownApproval(approval, agent?.toolVisibility ?? 'none');
  }
}

/** Whether there can be any that the principal may list and decide. */
function mayDecideAny({ scopes }: Principal): boolean {
  return scopes.includes('approve') || scopes.includes('chat');
}

/** Whether the principal may list and decide it: by its scope, or because it began the turn. */
function mayDecide(approval: Approval, principal: Principal): boolean {
  if (principal.agents?.includes(approval.stored.session.agent) === false) return false;
  return principal.scopes.includes('approve') || (principal.scopes.includes('chat') && isOwn(approval, principal));
}
