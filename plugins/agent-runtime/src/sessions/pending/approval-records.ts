import {
  audit,
  type Extensions,
  type Logger,
  type PluginContext,
  type Principal,
  type SessionStore,
  SessionStores,
} from '@plugboard/kernel';
import {
  type Account,
  type ApprovalPage,
  ExpiryClock,
  openToolCalls,
  type SessionId,
  type TurnPage,
} from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { callerFields, digestOf } from '../../engine/diagnostics/audit-fields.js';
import type { ToolOutcome } from '../../engine/tools/run-tool.js';
import { messagesAtEnd } from '../history/messages-at-end.js';
import { reserveIn, type StoreCall, storeCalls } from '../store/store-call.js';
import {
  type Approval,
  approvalIdOf,
  approvalOf,
  type Decision,
  encodeApproval,
  type ListedApproval,
  listedApproval,
} from './approval.js';

/** The open calls of a session that a person decides about. */
export interface OpenApprovals {
  /** In the order of the calls. */
  readonly approvals: readonly Approval[];
  /** Ids of calls that were copied from another session, and cannot run here. */
  readonly copied: readonly string[];
}

/**
 * Reads and changes the requests for approval in the store. Every change is made once, and what is
 * read is reserved in the account of the request before.
 */
export class ApprovalRecords {
  readonly #stores: Extensions<SessionStore>;
  readonly #storeCall: StoreCall;
  readonly #clock: ExpiryClock;
  readonly #log: Logger;

  constructor(@inject(CONTEXT) { clock, log, extensions }: PluginContext) {
    this.#stores = extensions(SessionStores);
    this.#storeCall = storeCalls(clock);
    this.#clock = new ExpiryClock(clock);
    this.#log = log;
  }

  get #store(): SessionStore {
    return this.#stores.one();
  }

  /** Those of these ids that exist, in one query. */
  async all(project: string, ids: readonly string[], account: Account): Promise<readonly Approval[]> {
    const read = () => this.#store.approvals.get(project, ids, reserveIn(account));
    return (await this.#storeCall(read, 'approvals.get')).map(approvalOf);
  }

  async get(project: string, id: string, account: Account): Promise<Approval | undefined> {
    return (await this.all(project, [id], account))[0];
  }

  /** Finds one without its text, which may be large. */
  async find(project: string, id: string): Promise<ListedApproval | undefined> {
    const stored = await this.#storeCall(() => this.#store.approvals.find(project, id), 'approvals.find');
    return stored && listedApproval(stored);
  }

  /** Lists those of a project that wait. */
  async waiting(project: string, page: ApprovalPage): Promise<readonly ListedApproval[]> {
    const read = () => this.#store.approvals.waiting(project, { ...page, expiresAfter: this.#clock.now() });
    return (await this.#storeCall(read, 'approvals.waiting')).map(listedApproval);
  }

  /** The open calls of a session that wait for a person, or did, in the order of the calls. */
  async openIn(session: SessionId, callIds: readonly string[], account: Account): Promise<OpenApprovals> {
    if (callIds.length === 0) return { approvals: [], copied: [] };
    const known = await this.all(session.project, callIds.map(approvalIdOf), account);
    const own = known.filter((approval) => isSame(approval.session, session));
    return {
      approvals: await Promise.all(own.map((approval) => this.expire(approval, account))),
      copied: known.filter((approval) => !own.includes(approval)).map(({ call }) => call.id),
    };
  }

  /** The same for a session that is not loaded: only its last turns are read (S-76). */
  async openAtEnd(session: SessionId, account: Account): Promise<OpenApprovals> {
    const reserve = reserveIn(account);
    const read = (page: TurnPage) => this.#storeCall(() => this.#store.turns(session, { ...page, reserve }), 'turns', session);
    return this.openIn(session, openToolCalls(await messagesAtEnd(read)), account);
  }

  /**
   * Decides about a call that waits. Returns it as it then is: with another decision, if somebody
   * else was faster.
   *
   * @param decider the caller that decided; undefined if nobody did.
   */
  async decide(approval: Approval, decision: Decision, account: Account, decider?: Principal): Promise<Approval> {
    let current: Approval | undefined = approval;
    while (current?.state === 'waiting') {
      const decided: Approval | undefined = await this.#replace(current, {
        ...current,
        state: decision.approve ? 'approved' : 'denied',
        decision,
      });
      if (decided) {
        this.#audit(decided, decision, decider);
        return decided;
      }
      current = await this.get(approval.session.project, approval.id, account);
    }
    return current ?? approval;
  }

  /** When a call that begins to wait now does, and until when it waits. */
  timesOf(lifetime: number): { readonly createdAt: number; readonly expiresAt: number } {
    const createdAt = this.#clock.stamp();
    return { createdAt, expiresAt: createdAt + lifetime };
  }

  /** Decides about a call whose time is over. */
  async expire(approval: Approval, account: Account): Promise<Approval> {
    if (approval.state !== 'waiting' || this.#clock.now() < approval.expiresAt) return approval;
    return this.decide(approval, { approve: false, by: 'expired' }, account);
  }

  /** Counts wrong codes that another caller tried. @returns how many there were. */
  async countWrongCodes(approval: Approval, count: number): Promise<number> {
    const wrongCodes = (approval.wrongCodes ?? 0) + count;
    await this.#replace(approval, { ...approval, wrongCodes });
    return wrongCodes;
  }

  /**
   * An approved call is about to run. Returns undefined if somebody else has changed it meanwhile.
   */
  start(approval: Approval): Promise<Approval | undefined> {
    return this.#replace(approval, { ...approval, state: 'started' });
  }

  /** An approved call has a result. It is kept until the conversation has it. */
  async end(approval: Approval, outcome: ToolOutcome): Promise<void> {
    await this.#replace(approval, { ...approval, state: 'ended', outcome });
  }

  /** A call of a committed turn waits now. */
  auditRequest(approval: Pick<Approval, 'id' | 'call'>, session: SessionId, principal: Principal): void {
    const fields = { ...auditFields({ ...approval, session }), ...callerFields(principal) };
    audit(this.#log, 'approval_requested', fields, 'a tool call waits for approval');
  }

  async #replace(approval: Approval, change: Approval): Promise<Approval | undefined> {
    const { stored } = approval;
    const { waits, text } = encodeApproval(change);
    const replaced = await this.#storeCall(
      () => this.#store.approvals.replace(stored, { waits, text }),
      'approvals.replace',
      stored.session,
    );
    return replaced ? approvalOf({ ...stored, waits, text }) : undefined;
  }

  #audit(approval: Approval, { approve, by, reason }: Decision, decider: Principal | undefined): void {
    const event = by === 'expired' || by === 'overtaken' ? `approval_${by}` : 'approval_decided';
    const waited_ms = Math.max(0, Math.round(this.#clock.now() - approval.createdAt));
    const fields = { ...auditFields(approval), approve, by, reason, ...callerFields(decider), waited_ms };
    audit(this.#log, event, fields, AUDITED[event] ?? 'a tool call was approved or denied');
  }
}

const AUDITED: Readonly<Record<string, string>> = {
  approval_expired: 'a tool call was not approved in time',
  approval_overtaken: 'a tool call was not approved before the next message',
};

/** What an audit line says about a call. Never its arguments. */
export function auditFields({ id, call, session }: Pick<Approval, 'id' | 'call' | 'session'>): object {
  return {
    approval: id,
    project: session.project,
    agent: session.agent,
    tool: `${call.tool.entry}/${call.tool.name}`,
    arguments_digest: digestOf(call.arguments),
  };
}

function isSame(a: SessionId, b: SessionId): boolean {
  return a.project === b.project && a.agent === b.agent && a.key === b.key;
}
