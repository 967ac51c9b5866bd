import { audit, type Logger, type PluginContext, type Principal, type Turn } from '@plugboard/kernel';
import { type Account, type ApprovalPage, ExpiryClock, openToolCalls, type SessionId } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { callerFields, digestOf } from '../../engine/diagnostics/log-fields.js';
import { messagesAtEnd } from '../history/messages-at-end.js';
import { reserveIn, SessionStorage } from '../store/session-storage.js';
import {
  type ApprovalRecord,
  approvalIdOf,
  approvalOf,
  type Decision,
  encodeApproval,
  type ListedApproval,
  listedApproval,
} from './approval.js';
import { TurnJournal } from './turn-journal.js';

/** Milliseconds for which services are expected to know keys, as this server does. */
const KEY_LIFETIME = 24 * 60 * 60_000;

/** The open calls of a session that a person decides about, or that a dead process began. */
export interface OpenApprovals {
  /** In the order of the calls. */
  readonly approvals: readonly ApprovalRecord[];
  /** Calls that were copied from another session, and cannot run here. */
  readonly copied: readonly ApprovalRecord[];
}

/**
 * Reads and changes the requests for approval in the store. Every change is made once, and what is
 * read is reserved in the account of the request before.
 */
export class ApprovalRecords {
  readonly #storage: SessionStorage;
  readonly #context: Pick<PluginContext, 'clock'>;
  #expiry: ExpiryClock | undefined;
  readonly #log: Logger;
  readonly #entry: string;

  constructor(@inject(CONTEXT) context: PluginContext, @inject(SessionStorage) storage: SessionStorage) {
    this.#storage = storage;
    this.#context = context;
    this.#log = context.log;
    this.#entry = context.entry;
  }

  /** The time that all servers share, where several use the store (PG-26). */
  get #clock(): ExpiryClock {
    const { clock } = this.#context;
    this.#expiry ??= new ExpiryClock({
      now: () => (this.#storage.store.shared ?? clock).now(),
      monotonic: () => clock.monotonic(),
      after: (ms, run) => clock.after(ms, run),
    });
    return this.#expiry;
  }

  /** Those of these ids that exist, in one query. */
  async get(project: string, ids: readonly string[], account: Account): Promise<readonly ApprovalRecord[]> {
    const reserve = reserveIn(account);
    return (await this.#storage.call((store) => store.approvals.get(project, ids, reserve), 'approvals.get')).map(approvalOf);
  }

  /** Finds one without its text, which may be large. */
  async find(project: string, id: string): Promise<ListedApproval | undefined> {
    const stored = await this.#storage.call((store) => store.approvals.find(project, id), 'approvals.find');
    return stored && listedApproval(stored);
  }

  /** Lists those of a project that wait. */
  async waiting(project: string, page: ApprovalPage): Promise<readonly ListedApproval[]> {
    const expiresAfter = this.#clock.now();
    const read = this.#storage.call((store) => store.approvals.waiting(project, { ...page, expiresAfter }), 'approvals.waiting');
    return (await read).map(listedApproval);
  }

  /** The open calls of a session that wait for a person, or did, in the order of the calls. */
  async openIn(session: SessionId, callIds: readonly string[], account: Account): Promise<OpenApprovals> {
    if (callIds.length === 0) return { approvals: [], copied: [] };
    const known = await this.get(session.project, callIds.map(approvalIdOf), account);
    const own = known.filter((approval) => isSame(approval.session, session));
    return {
      approvals: await Promise.all(own.map((approval) => this.expire(approval, account))),
      copied: known.filter((approval) => !own.includes(approval)),
    };
  }

  /** The same for a session that is not loaded: only its last turns are read (S-76). */
  async openAtEnd(session: SessionId, account: Account): Promise<OpenApprovals> {
    const reserve = reserveIn(account);
    const messages = await messagesAtEnd((page) =>
      this.#storage.call((store) => store.turns(session, { ...page, reserve }), 'turns', session),
    );
    return this.openIn(session, openToolCalls(messages), account);
  }

  /**
   * Decides about a call that waits. Returns it as it then is: with another decision, if somebody
   * else was faster.
   *
   * @param decider the caller that decided; undefined if nobody did.
   */
  async decide(approval: ApprovalRecord, decision: Decision, account: Account, decider?: Principal): Promise<ApprovalRecord> {
    let current: ApprovalRecord | undefined = approval;
    while (current?.state === 'waiting') {
      const state = decision.approve ? 'approved' : 'denied';
      const decided: ApprovalRecord | undefined = await this.replace(current, { state, decision });
      if (decided) {
        this.#audit(decided, decision, decider);
        return decided;
      }
      [current] = await this.get(approval.session.project, [approval.id], account);
    }
    return current ?? approval;
  }

  /** Decides about a call whose time is over. */
  async expire(approval: ApprovalRecord, account: Account): Promise<ApprovalRecord> {
    if (approval.state !== 'waiting' || this.#clock.now() < approval.expiresAt) return approval;
    return this.decide(approval, { approve: false, by: 'expired' }, account);
  }

  /** Stores a change. Returns undefined if somebody else has changed the approval meanwhile. */
  async replace(approval: ApprovalRecord, change: Partial<ApprovalRecord>): Promise<ApprovalRecord | undefined> {
    const { stored } = approval;
    const { waits, text } = encodeApproval({ ...approval, ...change });
    const replace = this.#storage.call(
      (store) => store.approvals.replace(stored, { waits, text }),
      'approvals.replace',
      stored.session,
    );
    return (await replace) ? approvalOf({ ...stored, waits, text }) : undefined;
  }

  /** Whether a call is so old that its service may have forgotten its key. */
  isOld({ createdAt }: ApprovalRecord): boolean {
    return this.#clock.now() - createdAt > KEY_LIFETIME;
  }

  /** Makes the journal of a turn, unless the store lasts no longer than the process. */
  journalOf(session: SessionId, turn: Turn): TurnJournal | undefined {
    const storage = this.#storage;
    if (storage.store.isVolatile) return undefined;
    return new TurnJournal({ storage, entry: this.#entry, session, turn, now: () => this.#clock.stamp() });
  }

  /** When a call that begins to wait now does, and until when it waits. */
  timesOf(lifetime: number): { readonly createdAt: number; readonly expiresAt: number } {
    const createdAt = this.#clock.stamp();
    return { createdAt, expiresAt: createdAt + lifetime };
  }

  /** A call of a committed turn waits now. */
  auditRequest(approval: Pick<ApprovalRecord, 'id' | 'call'>, session: SessionId, principal: Principal): void {
    const fields = { ...auditFields({ ...approval, session }), ...callerFields(principal) };
    audit(this.#log, 'approval_requested', fields, 'a tool call waits for approval');
  }

  #audit(approval: ApprovalRecord, { approve, by, reason }: Decision, decider: Principal | undefined): void {
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
function auditFields({ id, call, session }: Pick<ApprovalRecord, 'id' | 'call' | 'session'>): object {
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
