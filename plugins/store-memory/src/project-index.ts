import type { ApprovalPage, SessionInfo, SessionPage, StoredApproval } from '@plugboard/kernel/contracts';
import { listedOf, type MemoryApproval, type MemorySession } from './memory-session.js';
import { OrderedList } from './ordered-list.js';

/**
 * Where the sessions of one project, and what they hold, are found: by name, and in the order of a
 * list. Written with every change, so that no look-up and no page walks all sessions.
 */
export class ProjectIndex {
  /** The sessions that hold documents and approvals, by the names of these. */
  readonly documents = new Map<string, MemorySession>();
  readonly approvals = new Map<string, MemorySession>();
  /** The sessions that belong to another, by the opaque id of that one. */
  readonly #children = new Map<string, Set<MemorySession>>();
  /** By last activity. */
  readonly #sessions = new OrderedList<MemorySession>(
    (a, b) => a.updatedAt - b.updatedAt || a.origin.sequence - b.origin.sequence,
  );
  /** Approvals that wait, in the order of their requests. */
  readonly #waiting = new OrderedList<MemoryApproval>((a, b) => a.sequence - b.sequence);

  get isEmpty(): boolean {
    return this.#sessions.size === 0;
  }

  add(session: MemorySession): void {
    const { parent } = session.origin;
    if (parent !== undefined) this.#children.set(parent, this.childrenOf(parent).add(session));
    this.#sessions.add(session);
  }

  childrenOf(conversation: string): Set<MemorySession> {
    return this.#children.get(conversation) ?? new Set();
  }

  /** Moves a session that a change makes the last active one. */
  touch(session: MemorySession, change: () => void): void {
    this.#sessions.delete(session);
    change();
    this.#sessions.add(session);
  }

  delete(session: MemorySession): void {
    const { parent = '' } = session.origin;
    const siblings = this.childrenOf(parent);
    siblings.delete(session);
    if (siblings.size === 0) this.#children.delete(parent);
    this.#sessions.delete(session);
    for (const name of session.documentNames) this.documents.delete(name);
    for (const approval of session.approvals) {
      this.approvals.delete(approval.stored.id);
      this.#waiting.delete(approval);
    }
  }

  setApproval(session: MemorySession, approval: MemoryApproval): void {
    const { id, waits } = approval.stored;
    const before = session.approval(id);
    if (before) this.#waiting.delete(before);
    if (waits) this.#waiting.add(approval);
    session.setApproval(approval);
    this.approvals.set(id, session);
  }

  /** Returns a page of the sessions. */
  list({ limit, order, after, user, agents }: SessionPage, last: MemorySession | undefined): readonly SessionInfo[] {
    const allowed = agents && new Set(agents);
    const sequence = last?.origin.sequence ?? -1;
    const compare = (one: MemorySession) =>
      after === undefined ? undefined : one.updatedAt - after.updatedAt || one.origin.sequence - sequence;
    const sessions =
      order === 'asc'
        ? this.#sessions.ascending((one) => (compare(one) ?? 1) <= 0)
        : this.#sessions.descending((one) => (compare(one) ?? -1) >= 0);
    return sessions
      .filter(({ id, origin }) => origin.parent === undefined && (allowed?.has(id.agent) ?? true))
      .map(({ info }) => info)
      .filter((info) => user === undefined || info.user === user)
      .take(limit)
      .toArray();
  }

  /** Returns a page of the approvals that wait. */
  waiting(page: ApprovalPage): readonly Omit<StoredApproval, 'text'>[] {
    const { limit, order, after, agents, caller, expiresAfter = 0, reserve } = page;
    const last = after === undefined ? undefined : this.approvals.get(after)?.approval(after)?.sequence;
    if (after !== undefined && last === undefined) return [];
    const waiting =
      order === 'asc'
        ? this.#waiting.ascending(({ sequence }) => last !== undefined && sequence <= last)
        : this.#waiting.descending(({ sequence }) => last !== undefined && sequence >= last);
    return waiting
      .map(listedOf)
      .filter(({ session, expiresAt }) => expiresAt > expiresAfter && (agents?.includes(session.agent) ?? true))
      .filter((one) => caller === undefined || one.caller === caller)
      .take(limit)
      .map((listed) => {
        reserve?.(Buffer.byteLength(listed.listed));
        return listed;
      })
      .toArray();
  }
}

/** The index of every project that has sessions. */
export class SessionIndex {
  readonly #projects = new Map<string, ProjectIndex>();

  /** Undefined for a project without sessions. */
  of(project: string): ProjectIndex | undefined {
    return this.#projects.get(project);
  }

  add(session: MemorySession): void {
    const { project } = session.id;
    const index = this.#projects.get(project) ?? new ProjectIndex();
    this.#projects.set(project, index);
    index.add(session);
  }

  delete(session: MemorySession): void {
    const { project } = session.id;
    const index = this.#projects.get(project);
    index?.delete(session);
    if (index?.isEmpty) this.#projects.delete(project);
  }

  clear(): void {
    this.#projects.clear();
  }
}
