import {
  type Metadata,
  type NewSession,
  type SessionId,
  type SessionPage,
  type Summary,
  sessionTitle,
  type TurnCommit,
  type TurnPage,
} from '@plugboard/kernel/contracts';
import t from 'tap';
import { fails, PlainStore, type StoredData } from './plain-store.js';

t.test('finds faulty creation and metadata of sessions', async (t) => {
  class Over extends PlainStore {
    override async create(id: SessionId, { metadata, messages }: NewSession) {
      this.add(id, { metadata, turns: messages.length > 0 ? [messages] : [] });
    }
  }
  t.ok(await fails(Over, 'creates no session over an existing one'));

  class Seeds extends PlainStore {
    override async create(id: SessionId, { metadata, messages }: NewSession) {
      await super.create(id, { metadata, messages: [] });
      this.sessions.get(this.keyOf(id))?.turns.push(messages);
    }
  }
  t.ok(await fails(Seeds, 'creates a session before its first turn'), 'a session without messages has no turn');

  class Bare extends PlainStore {
    override async create(id: SessionId, { messages }: NewSession) {
      await super.create(id, { metadata: {}, messages });
    }
  }
  t.ok(await fails(Bare, 'creates a session before its first turn'));

  class Makes extends PlainStore {
    override async setMetadata(id: SessionId, metadata: Metadata) {
      if (!this.sessions.has(this.keyOf(id))) this.add(id, {});
      await super.setMetadata(id, metadata);
    }
  }
  t.ok(await fails(Makes, 'ignores changes to a session that does not exist'));

  class Everywhere extends PlainStore {
    override async find(_: string, conversation: string) {
      const projects = new Set([...this.sessions.values()].map(({ id }) => id.project));
      for (const project of projects) {
        const found = await super.find(project, conversation);
        if (found) return found;
      }
      return undefined;
    }
  }
  t.ok(await fails(Everywhere, 'finds a session by its id, and by its opaque id within its project only'));

  class Merges extends PlainStore {
    override async setMetadata(id: SessionId, metadata: Metadata) {
      await super.setMetadata(id, { ...(await this.info(id))?.metadata, ...metadata });
    }
  }
  t.ok(await fails(Merges, 'replaces metadata'));

  class Poisoned extends PlainStore {
    override async setMetadata(id: SessionId, metadata: Metadata) {
      const copy = {};
      for (const [key, value] of Object.entries(metadata)) Reflect.set(copy, key, value);
      await super.setMetadata(id, copy);
    }
  }
  t.ok(await fails(Poisoned, 'S-19 refuses metadata with a key __proto__, or keeps it as data'));

  class Shares extends PlainStore {
    override async setMetadata(id: SessionId, metadata: Metadata) {
      Object.assign(this.sessions.get(this.keyOf(id)) ?? {}, { metadata });
    }
  }
  t.ok(await fails(Shares, 'shares no metadata with its callers'));

  class Forgets extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      Object.assign(this.sessions.get(this.keyOf(id)) ?? {}, { user: turn.user });
    }
  }
  t.ok(await fails(Forgets, 'keeps the user of the latest turn that names one'));

  class Renames extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      Object.assign(this.sessions.get(this.keyOf(id)) ?? {}, { title: sessionTitle(turn.messages) });
    }
  }
  t.ok(await fails(Renames, 'gives a session the title of its first message'));

  class Untitled extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      await super.fork(id, key, turns);
      Object.assign(this.sessions.get(this.keyOf({ ...id, key })) ?? {}, { title: undefined });
    }
  }
  t.ok(await fails(Untitled, 'gives a session the title of its first message'), 'a fork has the title of its source');

  class Touches extends PlainStore {
    override async load(id: SessionId) {
      Object.assign(this.sessions.get(this.keyOf(id)) ?? {}, { updatedAt: this.clock.now() });
      return super.load(id);
    }
  }
  t.ok(await fails(Touches, 'keeps the times of creation and of the last turn'));

  class Forgetful extends PlainStore {
    constructor(clock: PlainStore['clock'], kept: StoredData) {
      super(clock, kept);
      for (const session of kept.sessions.values()) Object.assign(session, { metadata: {} });
    }
  }
  t.ok(await fails(Forgetful, 'keeps sessions across a restart'));
});

t.test('finds faulty pages of turns', async (t) => {
  const pages = 'returns messages in pages of whole turns';
  class Messages extends PlainStore {
    override async turns(id: SessionId, page: TurnPage) {
      const turns = await super.turns(id, { ...page, limit: 100 });
      return turns
        .flatMap(({ turn, messages }) => messages.map((message) => ({ turn, messages: [message] })))
        .slice(0, page.limit);
    }
  }
  t.ok(await fails(Messages, pages));

  class Backwards extends PlainStore {
    override async turns(id: SessionId, page: TurnPage) {
      const turns = await super.turns(id, { ...page, order: 'asc' });
      return page.order === 'asc' ? turns : [...turns].reverse();
    }
  }
  t.ok(await fails(Backwards, pages));

  class Versions extends PlainStore {
    override async turns(id: SessionId, page: TurnPage) {
      const base = this.sessions.get(this.keyOf(id))?.base ?? 0;
      return (await super.turns(id, page)).map(({ turn, messages }) => ({ turn: base + turn, messages }));
    }
  }
  t.ok(await fails(Versions, 'numbers the turns of a session that replaces a deleted one from 1'));

  class NoEmpty extends PlainStore {
    override async turns(id: SessionId, page: TurnPage) {
      return (await super.turns(id, page)).filter(({ messages }) => messages.length > 0);
    }
  }
  t.ok(await fails(NoEmpty, 'returns long turns and turns without messages unchanged'));
});

t.test('finds faulty lists', async (t) => {
  const order = 'lists the sessions of a project in the order of their last activity';
  const pages = 'lists each session on exactly one page, even if sessions change meanwhile';
  const filters = 'filters lists by user and by agents';
  class NoTenants extends PlainStore {
    override async list(_: string, page: SessionPage) {
      const projects = new Set([...this.sessions.values()].map(({ id }) => id.project));
      return (await Promise.all([...projects].map((project) => super.list(project, page)))).flat();
    }
  }
  t.ok(await fails(NoTenants, order));

  class ByCreation extends PlainStore {
    override infoOf(session: Parameters<PlainStore['infoOf']>[0]) {
      return { ...super.infoOf(session), updatedAt: session.createdAt };
    }
  }
  t.ok(await fails(ByCreation, order));

  class ByNow extends PlainStore {
    override async list(project: string, { after, ...page }: SessionPage) {
      const now = after && (await super.find(project, after.conversation));
      return super.list(project, { ...page, after: now });
    }
  }
  t.ok(await fails(ByNow, pages));

  class Repeats extends PlainStore {
    override async list(project: string, page: SessionPage) {
      const { after, ...rest } = page;
      const all = await super.list(project, { ...rest, limit: 1000 });
      const last = all.findIndex(({ conversation }) => conversation === after?.conversation);
      return all.slice(Math.max(last, 0)).slice(0, page.limit);
    }
  }
  t.ok(await fails(Repeats, 'continues a list where a session was that is gone'));

  class LimitsFirst extends PlainStore {
    override async list(project: string, { user, ...page }: SessionPage) {
      return (await super.list(project, page)).filter((info) => user === undefined || info.user === user);
    }
  }
  t.ok(await fails(LimitsFirst, filters));

  class AllAgents extends PlainStore {
    override async list(project: string, { agents, ...page }: SessionPage) {
      return super.list(project, { ...page, agents: agents?.length ? agents : undefined });
    }
  }
  t.ok(await fails(AllAgents, filters));

  class Patterns extends PlainStore {
    override async list(project: string, { user, ...page }: SessionPage) {
      const all = await super.list(project, page);
      const pattern = new RegExp(
        `^${(user ?? '%')
          .replace(/[^%_\w]/g, '\\$&')
          .replaceAll('%', '.*')
          .replaceAll('_', '.')}$`,
        's',
      );
      return all.filter((info) => user === undefined || pattern.test(info.user ?? ''));
    }
  }
  t.ok(await fails(Patterns, 'S-18 treats every filter value as data'));

  class Trims extends PlainStore {
    override async list(project: string, { agents, ...page }: SessionPage) {
      const all = await super.list(project, page);
      return all.filter(
        ({ id }) => agents === undefined || `,${agents.join(',')},`.toLowerCase().includes(`,${id.agent},`.toLowerCase()),
      );
    }
  }
  t.ok(await fails(Trims, 'S-18 treats every filter value as data'));
});

t.test('finds faulty summaries and forks', async (t) => {
  class Stale extends PlainStore {
    override async putSummary(id: SessionId, _: number, summary: Summary) {
      await super.putSummary(id, this.versionOf(id), summary);
    }
  }
  t.ok(await fails(Stale, 'ignores a summary of another version'));

  class First extends PlainStore {
    override async putSummary(id: SessionId, version: number, summary: Summary) {
      if (!this.sessions.get(this.keyOf(id))?.summary) await super.putSummary(id, version, summary);
    }
  }
  t.ok(await fails(First, 'replaces the summary'));

  class Drops extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      Object.assign(this.sessions.get(this.keyOf(id)) ?? {}, { summary: undefined });
    }
  }
  t.ok(await fails(Drops, 'replaces the summary'));

  class Aliases extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      await super.fork(id, key, turns);
      const [source, copy] = [id, { ...id, key }].map((one) => this.sessions.get(this.keyOf(one)));
      if (source && copy && source.turns.length > turns) {
        source.turns.length = turns;
        copy.turns = source.turns;
      }
    }
  }
  t.ok(await fails(Aliases, 'forks a session at a turn; both continue independently'));

  class Onto extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      if (key !== id.key) this.sessions.delete(this.keyOf({ ...id, key }));
      await super.fork(id, key, turns);
    }
  }
  t.ok(await fails(Onto, 'refuses to fork over an existing session'));

  class Anew extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      this.kept.tombstones.delete(this.keyOf({ ...id, key }));
      await super.fork(id, key, turns);
    }
  }
  t.ok(await fails(Anew, 'forks to the key of a deleted session, and not from one'));

  class WholeSummary extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      await super.fork(id, key, turns);
      const { summary } = this.sessions.get(this.keyOf(id)) ?? {};
      Object.assign(this.sessions.get(this.keyOf({ ...id, key })) ?? {}, { summary });
    }
  }
  t.ok(await fails(WholeSummary, 'copies the summary to a fork only if all it covers is copied'));

  class Backdated extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      await super.fork(id, key, turns);
      const { createdAt } = this.sessions.get(this.keyOf(id)) ?? {};
      Object.assign(this.sessions.get(this.keyOf({ ...id, key })) ?? {}, { createdAt });
    }
  }
  t.ok(await fails(Backdated, 'dates a fork from the time of the fork'));
});

t.test('finds incomplete and excessive deletions', async (t) => {
  const all = 'deletes a session completely';
  const conflict = 'refuses commits that loaded the session before its deletion';
  class NoTombstone extends PlainStore {
    override async delete(id: SessionId) {
      const wasThere = await super.delete(id);
      this.kept.tombstones.delete(this.keyOf(id));
      return wasThere;
    }
  }
  t.ok(await fails(NoTombstone, all));
  t.ok(await fails(NoTombstone, conflict));

  class SameVersion extends PlainStore {
    override async delete(id: SessionId) {
      const version = this.versionOf(id);
      const wasThere = await super.delete(id);
      const tombstone = this.kept.tombstones.get(this.keyOf(id));
      if (tombstone && wasThere) tombstone.version = version;
      return wasThere;
    }
  }
  t.ok(await fails(SameVersion, conflict));

  class Empties extends PlainStore {
    override async delete(id: SessionId) {
      const session = this.sessions.get(this.keyOf(id));
      if (!session) return false;
      Object.assign(session, { base: this.versionOf(id) + 1, turns: [] });
      return true;
    }
  }
  t.ok(await fails(Empties, all), 'what is known of it stays');

  class ByKey extends PlainStore {
    override async delete(id: SessionId) {
      for (const other of [...this.sessions.values()]) if (other.id.key === id.key) await super.delete(other.id);
      return super.delete(id);
    }
  }
  t.ok(await fails(ByKey, 'deletes no other session'));

  class KeepsMetadata extends PlainStore {
    readonly old = new Map<string, Metadata>();
    override async delete(id: SessionId) {
      this.old.set(this.keyOf(id), this.sessions.get(this.keyOf(id))?.metadata ?? {});
      return super.delete(id);
    }
    override add(id: SessionId, more: Parameters<PlainStore['add']>[1]) {
      return super.add(id, { metadata: this.old.get(this.keyOf(id)) ?? {}, ...more });
    }
  }
  t.ok(await fails(KeepsMetadata, 'starts a new session over a deleted one by a turn'));

  class FromZero extends PlainStore {
    override async create(id: SessionId, session: NewSession) {
      this.kept.tombstones.delete(this.keyOf(id));
      await super.create(id, session);
    }
  }
  t.ok(await fails(FromZero, 'starts a new session over a deleted one without a turn'));

  class TakesAnswers extends PlainStore {
    override async delete(id: SessionId) {
      this.kept.answers.clear();
      return super.delete(id);
    }
  }
  t.ok(await fails(TakesAnswers, 'keeps idempotency records of a deleted session'));

  class Forever extends PlainStore {
    override buried(id: SessionId) {
      return this.kept.tombstones.get(this.keyOf(id))?.version ?? 0;
    }
  }
  t.ok(await fails(Forever, 'keeps the version of a deleted session for 30 days'));

  class InPlace extends PlainStore {
    readonly created = new Map<string, number>();
    override add(id: SessionId, more: Parameters<PlainStore['add']>[1]) {
      const session = super.add(id, { createdAt: this.created.get(this.keyOf(id)) ?? this.clock.now(), ...more });
      this.created.set(this.keyOf(id), session.createdAt);
      return session;
    }
  }
  t.ok(await fails(InPlace, 'dates a session that replaces a deleted one from its own creation'));

  class LeavesTurns extends PlainStore {
    override async delete(id: SessionId) {
      const begun = new Map(this.begun);
      const wasThere = await super.delete(id);
      for (const [turnId, turn] of begun) this.begun.set(turnId, turn);
      return wasThere;
    }
  }
  t.ok(await fails(LeavesTurns, 'keeps deletions across a restart and recovers no turn of a deleted session'));

  class NoMoreTurns extends PlainStore {
    override async recover() {
      return (await super.recover()).filter(({ id }) => !this.kept.tombstones.has(this.keyOf(id)));
    }
  }
  t.ok(await fails(NoMoreTurns, 'recovers turns that began after a deletion'));

  class Late extends PlainStore {
    override async delete(id: SessionId) {
      const { turns } = this.sessions.get(this.keyOf(id)) ?? {};
      const wasThere = await super.delete(id);
      if (turns && turns.length > 1) this.add(id, { turns: turns.slice(1) });
      return wasThere;
    }
  }
  t.ok(await fails(Late, 'leaves no message behind when a session is deleted during a commit'));
});
