import type { ApprovalChange, ApprovalPage, SessionId, StoredApproval, TurnCommit } from '@plugboard/kernel/contracts';
import t from 'tap';
import { failingCases, PlainStore } from './plain-store.js';

t.test('finds faults in the approvals', async (t) => {
  class LastWins extends PlainStore {
    override async replaceApproval(read: StoredApproval, change: Pick<ApprovalChange, 'waits' | 'text'>) {
      this.putApproval(read.session, { ...read, ...change });
      return true;
    }
  }
  t.same(await failingCases(LastWins), [
    'replaces an approval that nobody has changed since it was read, and only that',
    'lets one of several concurrent replacements win',
    'deletes the approvals of a deleted session, and copies none to a fork',
  ]);

  class Forgets extends PlainStore {
    override async commit(id: SessionId, { approvals, ...turn }: TurnCommit) {
      await super.commit(id, turn);
    }
  }
  t.ok((await failingCases(Forgets)).includes('stores approvals with their turn'));

  class Unfiltered extends PlainStore {
    override async waitingApprovals(project: string, { agents, ...page }: ApprovalPage) {
      return super.waitingApprovals(project, page);
    }
  }
  t.same(await failingCases(Unfiltered), ['lists what waits in a project, in the order of the requests']);

  class Everything extends PlainStore {
    override listed(approval: StoredApproval) {
      return approval;
    }
  }
  const listing = 'S-69 lists what waits without its text, by caller and time, and says how large it is before it reads it';
  t.same(await failingCases(Everything), ['stores approvals with their turn', listing]);
  for (const ignored of ['caller', 'expiresAfter', 'reserve']) {
    class Ignores extends PlainStore {
      override async waitingApprovals(project: string, page: ApprovalPage) {
        return super.waitingApprovals(project, { ...page, [ignored]: undefined });
      }
    }
    t.same(await failingCases(Ignores), [listing], ignored);
  }

  class Outlives extends PlainStore {
    override async delete(id: SessionId) {
      const kept = [...this.kept.approvals];
      const deleted = await super.delete(id);
      for (const [name, approval] of kept) this.kept.approvals.set(name, approval);
      return deleted;
    }
  }
  t.same(await failingCases(Outlives), ['deletes the approvals of a deleted session, and copies none to a fork']);
});
