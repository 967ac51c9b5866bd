import t from 'tap';
import { type ActiveMember, ActiveSet } from '../../src/exchange/active-set.js';

class Member implements ActiveMember {
  index = -1;
  constructor(readonly name: string) {}
}

function setOf(...members: readonly Member[]): ActiveSet<Member> {
  const set = new ActiveSet<Member>();
  for (const member of members) set.add(member);
  return set;
}

const names = (set: ActiveSet<Member>) => [...set].map(({ name }) => name).sort();

t.test('members come and go in any order', async (t) => {
  const a = new Member('a');
  const b = new Member('b');
  const c = new Member('c');
  const set = setOf(a, b, c);
  t.equal(set.size, 3);
  set.delete(a);
  t.strictSame(names(set), ['b', 'c']);
  set.delete(a);
  t.strictSame(names(set), ['b', 'c'], 'a member leaves once');
  set.add(a);
  set.delete(c);
  set.delete(a);
  t.strictSame(names(set), ['b']);
  set.delete(b);
  t.equal(set.size, 0);
  set.delete(b);
  t.equal(set.size, 0);
});

t.test('an iteration returns the members of the moment when it began', async (t) => {
  const set = setOf(new Member('a'), new Member('b'), new Member('c'));
  const seen: string[] = [];
  for (const member of set) {
    seen.push(member.name);
    set.delete(member);
  }
  t.strictSame(seen, ['a', 'b', 'c']);
  t.equal(set.size, 0);
});
