import t from 'tap';
import type { Metadata, NewSession, SessionId, SessionPage, Summary, TurnCommit, TurnPage } from '../../../src/index.js';
import { caught, type Kept, PlainStore } from './plain-store.js';

t.test('sessions that are made badly, or known badly', async (t) => {
  class Over extends PlainStore {
    override async create(id: SessionId, { metadata, messages }: NewSession) {
      this.add(id, { metadata, turns: messages.length > 0 ? [messages] : [] });
    }
  }
  t.ok(await caught(Over, 'makes no session where there is one'));

  class Seeds extends PlainStore {
    override async create(id: SessionId, { metadata, messages }: NewSession) {
      await super.create(id, { metadata, messages: [] });
      this.sessions.get(this.keyOf(id))?.turns.push(messages);
    }
  }
  t.ok(await caught(Seeds, 'makes a session before its first turn'), 'no messages are no turn');

  class Bare extends PlainStore {
    override async create(id: SessionId, { messages }: NewSession) {
      await super.create(id, { metadata: {}, messages });
    }
  }
  t.ok(await caught(Bare, 'makes a session before its first turn'));

  class Makes extends PlainStore {
    override async setMetadata(id: SessionId, metadata: Metadata) {
      if (!this.sessions.has(this.keyOf(id))) this.add(id, {});
      await super.setMetadata(id, metadata);
    }
  }
  t.ok(await caught(Makes, 'knows nothing of a session that nobody has used, and does nothing to it'));

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
  t.ok(await caught(Everywhere, 'knows a session by its three values, and by its opaque id in its project alone'));

  class Merges extends PlainStore {
    override async setMetadata(id: SessionId, metadata: Metadata) {
      await super.setMetadata(id, { ...(await this.info(id))?.metadata, ...metadata });
    }
  }
  t.ok(await caught(Merges, 'keeps what was attached, in the place of what was attached before'));

  class Poisoned extends PlainStore {
    override async setMetadata(id: SessionId, metadata: Metadata) {
      const copy = {};
      for (const [key, value] of Object.entries(metadata)) Reflect.set(copy, key, value);
      await super.setMetadata(id, copy);
    }
  }
  t.ok(await caught(Poisoned, 'S-19 refuses metadata with a __proto__, or keeps it as data'));

  class Shares extends PlainStore {
    override async setMetadata(id: SessionId, metadata: Metadata) {
      Object.assign(this.sessions.get(this.keyOf(id)) ?? {}, { metadata });
    }
  }
  t.ok(await caught(Shares, 'does not change with the metadata that it was given, nor with what it gave'));

  class Forgets extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      Object.assign(this.sessions.get(this.keyOf(id)) ?? {}, { user: turn.user });
    }
  }
  t.ok(await caught(Forgets, 'keeps who is talking, as the newest turn says that says it'));

  class Touches extends PlainStore {
    override async load(id: SessionId) {
      Object.assign(this.sessions.get(this.keyOf(id)) ?? {}, { updatedAt: this.clock.now() });
      return super.load(id);
    }
  }
  t.ok(await caught(Touches, 'keeps when a session was made, and when it was changed'));

  class Forgetful extends PlainStore {
    constructor(clock: PlainStore['clock'], kept: Kept) {
      super(clock, kept);
      for (const session of kept.sessions.values()) Object.assign(session, { metadata: {} });
    }
  }
  t.ok(await caught(Forgetful, 'knows what it knew of its sessions when it is opened again'));
});

t.test('turns that are paged badly', async (t) => {
  const pages = 'gives the messages turn by turn, in pages of whole turns';
  class Messages extends PlainStore {
    override async turns(id: SessionId, page: TurnPage) {
      const turns = await super.turns(id, { ...page, limit: 100 });
      return turns
        .flatMap(({ turn, messages }) => messages.map((message) => ({ turn, messages: [message] })))
        .slice(0, page.limit);
    }
  }
  t.ok(await caught(Messages, pages));

  class Backwards extends PlainStore {
    override async turns(id: SessionId, page: TurnPage) {
      const turns = await super.turns(id, { ...page, order: 'asc' });
      return page.order === 'asc' ? turns : [...turns].reverse();
    }
  }
  t.ok(await caught(Backwards, pages));

  class Versions extends PlainStore {
    override async turns(id: SessionId, page: TurnPage) {
      const base = this.sessions.get(this.keyOf(id))?.base ?? 0;
      return (await super.turns(id, page)).map(({ turn, messages }) => ({ turn: base + turn, messages }));
    }
  }
  t.ok(await caught(Versions, 'gives the turns of a session that began anew under the same numbers as those of any other'));

  class NoEmpty extends PlainStore {
    override async turns(id: SessionId, page: TurnPage) {
      return (await super.turns(id, page)).filter(({ messages }) => messages.length > 0);
    }
  }
  t.ok(await caught(NoEmpty, 'gives long turns, and turns without messages, as they were committed'));
});

t.test('lists that show too much, too little, or in another order', async (t) => {
  const order = 'lists the sessions of one project in the order in which they were made';
  const pages = 'lists page after page, each session once, whatever happens to it meanwhile';
  const filters = 'lists the sessions of one user, and those of some agents';
  class NoTenants extends PlainStore {
    override async list(_: string, page: SessionPage) {
      const projects = new Set([...this.sessions.values()].map(({ id }) => id.project));
      return (await Promise.all([...projects].map((project) => super.list(project, page)))).flat();
    }
  }
  t.ok(await caught(NoTenants, order));

  class ByUse extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      const session = this.sessions.get(this.keyOf(id));
      this.sessions.delete(this.keyOf(id));
      if (session) this.sessions.set(this.keyOf(id), session);
    }
  }
  t.ok(await caught(ByUse, order));
  t.ok(await caught(ByUse, pages));

  class Repeats extends PlainStore {
    override async list(project: string, page: SessionPage) {
      const { after, ...rest } = page;
      const all = await super.list(project, { ...rest, limit: 1000 });
      const last = all.findIndex(({ conversation }) => conversation === after);
      return all.slice(Math.max(last, 0)).slice(0, page.limit);
    }
  }
  t.ok(await caught(Repeats, 'lists nothing after a session that is not there'));

  class LimitsFirst extends PlainStore {
    override async list(project: string, { user, ...page }: SessionPage) {
      return (await super.list(project, page)).filter((info) => user === undefined || info.user === user);
    }
  }
  t.ok(await caught(LimitsFirst, filters));

  class AllAgents extends PlainStore {
    override async list(project: string, { agents, ...page }: SessionPage) {
      return super.list(project, { ...page, agents: agents?.length ? agents : undefined });
    }
  }
  t.ok(await caught(AllAgents, filters));

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
  t.ok(await caught(Patterns, 'S-18 takes every value of a filter for data'));

  class Trims extends PlainStore {
    override async list(project: string, { agents, ...page }: SessionPage) {
      const all = await super.list(project, page);
      return all.filter(
        ({ id }) => agents === undefined || `,${agents.join(',')},`.toLowerCase().includes(`,${id.agent},`.toLowerCase()),
      );
    }
  }
  t.ok(await caught(Trims, 'S-18 takes every value of a filter for data'));
});

t.test('summaries and copies that are wrong', async (t) => {
  class Stale extends PlainStore {
    override async putSummary(id: SessionId, _: number, summary: Summary) {
      await super.putSummary(id, this.versionOf(id), summary);
    }
  }
  t.ok(await caught(Stale, 'keeps no summary of another version than the one that is there'));

  class First extends PlainStore {
    override async putSummary(id: SessionId, version: number, summary: Summary) {
      if (!this.sessions.get(this.keyOf(id))?.summary) await super.putSummary(id, version, summary);
    }
  }
  t.ok(await caught(First, 'keeps a summary beside the messages, in the place of the one before'));

  class Drops extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      Object.assign(this.sessions.get(this.keyOf(id)) ?? {}, { summary: undefined });
    }
  }
  t.ok(await caught(Drops, 'keeps a summary beside the messages, in the place of the one before'));

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
  t.ok(await caught(Aliases, 'copies a session up to a turn, and both go their own way'));

  class Onto extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      if (key !== id.key) this.sessions.delete(this.keyOf({ ...id, key }));
      await super.fork(id, key, turns);
    }
  }
  t.ok(await caught(Onto, 'copies no session over another, nor over itself'));

  class Anew extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      this.kept.tombstones.delete(this.keyOf({ ...id, key }));
      await super.fork(id, key, turns);
    }
  }
  t.ok(await caught(Anew, 'copies from and to where a session was deleted'));

  class WholeSummary extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      await super.fork(id, key, turns);
      const { summary } = this.sessions.get(this.keyOf(id)) ?? {};
      Object.assign(this.sessions.get(this.keyOf({ ...id, key })) ?? {}, { summary });
    }
  }
  t.ok(await caught(WholeSummary, 'copies a summary where all that it covers is copied'));

  class Backdated extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      await super.fork(id, key, turns);
      const { createdAt } = this.sessions.get(this.keyOf(id)) ?? {};
      Object.assign(this.sessions.get(this.keyOf({ ...id, key })) ?? {}, { createdAt });
    }
  }
  t.ok(await caught(Backdated, 'takes a copy for a session that was made when it was copied'));
});

t.test('deletions that leave something, or take too much', async (t) => {
  const all = 'deletes a session with all that came of it';
  const conflict = 'refuses a commit by whoever loaded the session before it was deleted';
  class NoTombstone extends PlainStore {
    override async delete(id: SessionId) {
      const wasThere = await super.delete(id);
      this.kept.tombstones.delete(this.keyOf(id));
      return wasThere;
    }
  }
  t.ok(await caught(NoTombstone, all));
  t.ok(await caught(NoTombstone, conflict));

  class SameVersion extends PlainStore {
    override async delete(id: SessionId) {
      const version = this.versionOf(id);
      const wasThere = await super.delete(id);
      const tombstone = this.kept.tombstones.get(this.keyOf(id));
      if (tombstone && wasThere) tombstone.version = version;
      return wasThere;
    }
  }
  t.ok(await caught(SameVersion, conflict));

  class Empties extends PlainStore {
    override async delete(id: SessionId) {
      const session = this.sessions.get(this.keyOf(id));
      if (!session) return false;
      Object.assign(session, { base: this.versionOf(id) + 1, turns: [] });
      return true;
    }
  }
  t.ok(await caught(Empties, all), 'what is known of it stays');

  class ByKey extends PlainStore {
    override async delete(id: SessionId) {
      for (const other of [...this.sessions.values()]) if (other.id.key === id.key) await super.delete(other.id);
      return super.delete(id);
    }
  }
  t.ok(await caught(ByKey, 'deletes that session and no other'));

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
  t.ok(await caught(KeepsMetadata, 'begins anew with a turn where a session was deleted'));

  class FromZero extends PlainStore {
    override async create(id: SessionId, session: NewSession) {
      this.kept.tombstones.delete(this.keyOf(id));
      await super.create(id, session);
    }
  }
  t.ok(await caught(FromZero, 'begins anew without a turn where a session was deleted'));

  class TakesAnswers extends PlainStore {
    override async delete(id: SessionId) {
      this.kept.answers.clear();
      return super.delete(id);
    }
  }
  t.ok(await caught(TakesAnswers, 'knows what was answered in a session that was deleted'));

  class Forever extends PlainStore {
    override buried(id: SessionId) {
      return this.kept.tombstones.get(this.keyOf(id))?.version ?? 0;
    }
  }
  t.ok(await caught(Forever, 'remembers the version of a deleted session for 30 days and no longer'));

  class InPlace extends PlainStore {
    readonly created = new Map<string, number>();
    override add(id: SessionId, more: Parameters<PlainStore['add']>[1]) {
      const session = super.add(id, { createdAt: this.created.get(this.keyOf(id)) ?? this.clock.now(), ...more });
      this.created.set(this.keyOf(id), session.createdAt);
      return session;
    }
  }
  t.ok(await caught(InPlace, 'takes a session that begins anew for another than the deleted one'));

  class LeavesTurns extends PlainStore {
    override async delete(id: SessionId) {
      const begun = new Map(this.begun);
      const wasThere = await super.delete(id);
      for (const [turnId, turn] of begun) this.begun.set(turnId, turn);
      return wasThere;
    }
  }
  t.ok(await caught(LeavesTurns, 'has deleted what it deleted when it is opened again, and has no turn of it to recover'));

  class NoMoreTurns extends PlainStore {
    override async recover() {
      return (await super.recover()).filter(({ id }) => !this.kept.tombstones.has(this.keyOf(id)));
    }
  }
  t.ok(await caught(NoMoreTurns, 'tells of turns that began after the deletion as of any other'));

  class Late extends PlainStore {
    override async delete(id: SessionId) {
      const { turns } = this.sessions.get(this.keyOf(id)) ?? {};
      const wasThere = await super.delete(id);
      if (turns && turns.length > 1) this.add(id, { turns: turns.slice(1) });
      return wasThere;
    }
  }
  t.ok(await caught(Late, 'leaves no message behind where a session is deleted while a turn is committed to it'));
});
