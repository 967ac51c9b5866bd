import { audit, type Message, type PluginContext, type Principal, type SessionStore } from '@plugboard/kernel';
import type { Conversation, Conversations, ConversationTurns, NewConversation, Target } from '@plugboard/kernel/contracts';
import {
  type Account,
  conversationId,
  isConversationId,
  type Metadata,
  openToolCalls,
  SessionExists,
  type SessionId,
  type SessionInfo,
  type StoredTurn,
  TurnError,
} from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { assertMessages } from '../engine/messages/message-shape.js';
import { CurrentAgents } from '../engine/revision/current-agents.js';
import { assertNotFull, type SessionHistory } from './conversation/session-history.js';
import { messagesToAppend } from './history/session-input.js';
import { approvalPending } from './pending/approval.js';
import { ApprovalRecords } from './pending/approval-records.js';
import { type ListPage, listSessions } from './session-lists.js';
import { SessionSupervisor } from './session-supervisor.js';
import { assertSessionKey } from './store/session-key.js';
import { reserveIn, SessionStorage } from './store/session-storage.js';
import { parseRecord } from './turn-record.js';

/** Length of a generated key: unguessable and unique. */
const RANDOM_KEY = 22;

/**
 * Session operations for callers. Changes go through the session's actor, so that no turn runs at
 * the same time.
 */
export class SessionOperations implements Conversations {
  readonly #context: PluginContext;
  readonly #storage: SessionStorage;
  readonly #sessions: SessionSupervisor;
  readonly #agents: CurrentAgents;
  readonly #approvals: ApprovalRecords;

  constructor(
    @inject(CONTEXT) context: PluginContext,
    @inject(SessionStorage) storage: SessionStorage,
    @inject(SessionSupervisor) sessions: SessionSupervisor,
    @inject(CurrentAgents) agents: CurrentAgents,
    @inject(ApprovalRecords) approvals: ApprovalRecords,
  ) {
    this.#context = context;
    this.#storage = storage;
    this.#sessions = sessions;
    this.#agents = agents;
    this.#approvals = approvals;
  }

  async create(target: Target, { key, metadata, messages }: NewConversation, principal: Principal): Promise<Conversation> {
    if (key !== undefined) assertSessionKey(key, 'id');
    assertMessages(messages);
    const id = { project: principal.project, agent: target.name, key: key ?? this.#randomKey() };
    const added = messagesToAppend([], messages);
    await this.#sessions
      .use(id)
      .whileIdle(() => this.#insert((store) => store.create(id, { metadata, messages: added }), 'create', id));
    return this.#created(id);
  }

  list(page: ListPage, principal: Principal, account: Account): Promise<readonly Conversation[]> {
    return listSessions(this.#sessions, this.#storage, page, principal, account);
  }

  async get(id: string, principal: Principal): Promise<Conversation> {
    return this.#withStatus((await this.#requireOrBegun(id, principal)).info);
  }

  async setMetadata(conversation: string, metadata: Metadata, principal: Principal): Promise<Conversation> {
    const { id } = await this.#require(conversation, principal);
    await this.#storage.call((store) => store.setMetadata(id, metadata), 'setMetadata', id);
    return this.get(conversation, principal);
  }

  async turns(
    conversation: string,
    { approval, ...page }: Parameters<Conversations['turns']>[1],
    principal: Principal,
    account: Account,
  ): Promise<ConversationTurns> {
    const { info, isStored } = await this.#requireOrBegun(conversation, principal);
    const { id } = info;
    // A fork has the same turns, and its calls the same ids.
    const asking = approval === undefined ? undefined : await this.#approvals.find(id.project, approval);
    if (!isStored || (approval !== undefined && !asking)) return this.#withTools(id, []);
    const range = asking ? ({ limit: 1, order: 'asc', after: asking.turn - 1 } as const) : page;
    const reserve = reserveIn(account);
    return this.#withTools(id, await this.#storage.call((store) => store.turns(id, { ...range, reserve }), 'turns', id));
  }

  async watch(conversation: string, principal: Principal, maxBehind: number): ReturnType<Conversations['watch']> {
    const { info } = await this.#requireOrBegun(conversation, principal);
    const targetOf = (name: string) => {
      const found = this.#agents.revision.directory.resolve(name, principal);
      return found.kind === 'target' ? found.target : undefined;
    };
    const watch = this.#sessions.watch(info.id, maxBehind, targetOf);
    try {
      // Read after the watch has begun: no turn is in neither.
      return { turns: watch.turns, events: watch, stored: (await this.#find(conversation, principal))?.turns ?? 0 };
    } catch (error) {
      void watch.return();
      throw error;
    }
  }

  async append(
    conversation: string,
    messages: readonly Message[],
    principal: Principal,
    account: Account,
  ): Promise<ConversationTurns> {
    assertMessages(messages);
    const { id } = await this.#require(conversation, principal);
    const page = { order: 'desc', limit: 1, reserve: reserveIn(account) } as const;
    const added = await this.#sessions.use(id).whileIdle(async (history, turnId) => {
      await this.#append(id, history, { messages, turnId }, account);
      return this.#storage.call((store) => store.turns(id, page), 'turns', id);
    });
    return this.#withTools(id, added);
  }

  async #append(
    id: SessionId,
    history: SessionHistory,
    { messages, turnId }: { readonly messages: readonly Message[]; readonly turnId: string | undefined },
    account: Account,
  ): Promise<void> {
    try {
      const { signal } = new AbortController(); // a caller that has left does not stop it
      const stored = await history.current(account, signal);
      assertNotFull(stored);
      const { approvals } = await this.#approvals.openIn(id, openToolCalls(stored.messages), account);
      if (approvals.length > 0) throw approvalPending();
      const fresh = messagesToAppend(stored.messages, messages);
      await this.#storage.call((store) => store.commit(id, { turnId, expected: stored.version, messages: fresh }), 'commit', id);
    } finally {
      history.idle();
    }
  }

  async fork(
    conversation: string,
    { key, turns }: Parameters<Conversations['fork']>[1],
    principal: Principal,
  ): Promise<Conversation> {
    if (key !== undefined) assertSessionKey(key, 'id');
    const { id, turns: all } = await this.#require(conversation, principal);
    const copy = { ...id, key: key ?? this.#randomKey() };
    await this.#sessions
      .use(copy)
      .whileIdle(() => this.#insert((store) => store.fork(id, copy.key, Math.min(turns ?? all, all)), 'fork', copy));
    return this.#created(copy);
  }

  async putDocument(conversation: string, name: string, text: string, principal: Principal): Promise<void> {
    const { id } = await this.#require(conversation, principal);
    await this.#storage.call((store) => store.documents.put(id, name, text), 'documents.put', id);
  }

  async document(name: string, { project, agents }: Principal, account: Account): ReturnType<Conversations['document']> {
    const reserve = reserveIn(account);
    const found = await this.#storage.call((store) => store.documents.get(project, name, reserve), 'documents.get');
    if (!found || agents?.includes(found.id.agent) === false) return undefined;
    return { conversation: conversationId(found.id), agent: found.id.agent, text: found.text };
  }

  async deleteDocument(name: string, principal: Principal, account: Account): Promise<number | undefined> {
    if (!(await this.document(name, principal, account))) return undefined;
    return this.#storage.call((store) => store.documents.delete(principal.project, name), 'documents.delete');
  }

  async cancel(conversation: string, principal: Principal, account: Account): Promise<Conversation> {
    const { info } = await this.#requireOrBegun(conversation, principal);
    await this.#sessions.cancel(info.id, new TurnError('turn_cancelled', 'Another request cancelled the turn.'));
    const { approvals } = await this.#approvals.openAtEnd(info.id, account);
    const decision = { approve: false, by: 'cancelled' } as const;
    for (const approval of approvals) await this.#approvals.decide(approval, decision, account, principal);
    // The session of a first turn is gone with it.
    return this.#withStatus((await this.#find(conversation, principal)) ?? { ...info, isRunning: false });
  }

  async delete(conversation: string, principal: Principal): Promise<void> {
    const { info, isStored } = await this.#requireOrBegun(conversation, principal);
    const { id } = info;
    const reason = new TurnError('session_deleted', 'Another request deleted the session before the turn ended.');
    const existed = await this.#sessions.use(id).endTurnsThen(reason, async () => {
      await this.#sessions.childrenEnded(id);
      return this.#storage.call((store) => store.delete(id), 'delete', id);
    });
    if (isStored && !existed) throw notFound(); // deleted by another request
    const { token, tokenId } = principal;
    const fields = { project: id.project, agent: id.agent, conversation, token_id: tokenId, token_name: token };
    audit(this.#context.log, 'session_deleted', fields, 'a session was deleted');
  }

  #randomKey(): string {
    return this.#context.ids.base62(RANDOM_KEY);
  }

  async #find(conversation: string, { project, agents }: Principal): Promise<SessionInfo | undefined> {
    if (!isConversationId(conversation)) return undefined;
    const info = await this.#storage.call((store) => store.find(project, conversation), 'find');
    return info && (agents?.includes(info.id.agent) ?? true) ? info : undefined;
  }

  async #require(conversation: string, principal: Principal): Promise<SessionInfo> {
    const info = await this.#find(conversation, principal);
    if (!info) throw notFound();
    return info;
  }

  /**
   * Finds a session, also one whose first turn waits or runs, which the store does not know yet.
   */
  async #requireOrBegun(
    conversation: string,
    principal: Principal,
  ): Promise<{ readonly info: SessionInfo; readonly isStored: boolean }> {
    const stored = await this.#find(conversation, principal);
    const all = stored ? [] : this.#sessions.begun(principal.project);
    const begun = all.find(({ info }) => info.conversation === conversation)?.info;
    // Without a turn now, its first turn may have been stored since.
    if (!begun) {
      const info = stored ?? (await this.#require(conversation, principal));
      // A store that several servers share has the session before its first turn is stored.
      return { info, isStored: !info.isRunning || info.turns > 0 };
    }
    if (principal.agents?.includes(begun.id.agent) === false) throw notFound();
    return { info: begun, isStored: false };
  }

  async #insert(make: (store: SessionStore) => Promise<void>, operation: string, id: SessionId): Promise<void> {
    const work = (store: SessionStore) =>
      make(store).then(
        () => true,
        (error) => {
          if (error instanceof SessionExists) return false;
          throw error;
        },
      );
    if (!(await this.#storage.call(work, operation, id)))
      throw new TurnError('conversation_exists', 'A conversation with this key already exists.');
  }

  async #created(id: SessionId): Promise<Conversation> {
    const info = await this.#storage.call((store) => store.info(id), 'info', id);
    if (!info) throw notFound(); // deleted by another request
    return this.#withStatus(info);
  }

  #withStatus(info: SessionInfo): Conversation {
    return { ...info, status: this.#sessions.statusOf(info) };
  }

  /** Sessions stay readable when their agent has changed or its tools are unavailable. */
  async #withTools({ agent: name }: SessionId, turns: readonly StoredTurn[]): Promise<ConversationTurns> {
    const { directory, toolboxes } = this.#agents.revision;
    const agent = directory.named(name);
    const toolbox = agent && (await toolboxes.of(agent.tools, new AbortController().signal).catch(() => undefined));
    return {
      turns: turns.map(({ record, ...turn }) => ({ ...turn, record: parseRecord(record) })),
      toolVisibility: agent?.toolVisibility ?? 'none',
      toolOf: (nameAtModel) => {
        const known = toolbox?.tools.get(nameAtModel);
        return known && { entry: known.entry, name: known.tool.name };
      },
    };
  }
}

/**
 * The same error for a missing session and one of another project, so that callers cannot
 * distinguish them.
 */
function notFound(): TurnError {
  return new TurnError('conversation_not_found', 'No conversation with this id was found.');
}
