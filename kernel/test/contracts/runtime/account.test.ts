import { Account, Budget } from '@plugboard/kernel/contracts';
import t from 'tap';

const KIB = 1024;
const budgetOf = (limit: number) => new Budget({ name: 'memory of callers', unit: 'bytes', limit, setting: 'limits.memory' });
const caller = (tokenId: string) => ({ project: 'default', scopes: [], tokenId });

t.test('an account takes 64 KiB at a time, and gives all back when its last holder has left', async (t) => {
  const budget = budgetOf(1024 * KIB);
  const account = new Account(budget, caller('a'));
  t.notOk(account.reserve(1), 'nobody holds it');
  const [leave, leaveToo] = [account.hold(), account.hold()];
  for (let n = 0; n < 64; n++) t.ok(account.reserve(KIB));
  t.equal(budget.used, 64 * KIB);
  account.require(1);
  t.equal(budget.used, 128 * KIB);
  account.release(2 * KIB);
  t.equal(budget.used, 64 * KIB);
  leave();
  leave();
  t.equal(budget.used, 64 * KIB, 'the other holder is still there');
  leaveToo();
  t.equal(budget.used, 0);
  t.notOk(account.reserve(1));
});

t.test('accounts of one caller share what the caller may have, but for their first 64 KiB', async (t) => {
  const budget = budgetOf(1024 * KIB);
  const [first, second, other] = [caller('a'), caller('a'), caller('b')].map((one) => {
    const account = new Account(budget, one);
    account.hold();
    return account;
  }) as [Account, Account, Account];
  t.equal(first.limit, 512 * KIB);
  t.ok(first.reserve(512 * KIB));
  t.notOk(second.reserve(65 * KIB));
  t.ok(second.reserve(64 * KIB));
  t.ok(other.reserve(128 * KIB));
  t.throws(() => second.require(64 * KIB), { code: 'overloaded', message: /`limits\.memory`/, options: { retryAfter: 5 } });
});

t.test('S-72 the first 64 KiB of the accounts of one caller have a share of their own', async (t) => {
  const budget = budgetOf(1024 * KIB);
  const open = (tokenId: string) => {
    const account = new Account(budget, caller(tokenId));
    return { account, leave: account.hold() };
  };
  const small = Array.from({ length: 16 }, () => open('a'));
  const kept = small.filter(({ account }) => account.reserve(1));
  t.equal(kept.length, 8, 'half of all');
  t.ok(open('b').account.reserve(1));
  t.ok(open('b').account.reserve(128 * KIB));
  for (const { leave } of small) leave();
  t.equal(budget.used, 192 * KIB);

  const { account, leave } = open('a');
  t.ok(account.reserve(1) && account.reserve(256 * KIB), 'an account that grows');
  account.release(256 * KIB);
  leave();
  t.equal(budget.used, 192 * KIB);
  t.equal(Array.from({ length: 16 }, () => open('a')).filter((one) => one.account.reserve(1)).length, 6, 'half of the rest');
});

t.test('an account without an identity belongs to an address', async (t) => {
  const budget = budgetOf(1024 * KIB);
  const [one, same, another] = ['::1', '::1', '10.0.0.1'].map((address) => {
    const account = new Account(budget, { project: 'default', scopes: [] }, address);
    account.hold();
    return account;
  }) as [Account, Account, Account];
  t.ok(one.reserve(512 * KIB));
  t.notOk(same.reserve(65 * KIB));
  t.ok(another.reserve(128 * KIB));
});

t.test('an account that waits for memory gets it when another one is left', async (t) => {
  const budget = budgetOf(1024 * KIB);
  const [first, second] = [new Account(budget, caller('a')), new Account(budget, caller('a'))];
  const leave = first.hold();
  second.hold();
  t.ok(first.reserve(512 * KIB));
  const waiting = second.wait(100 * KIB, new AbortController().signal);
  leave();
  await waiting;
  t.equal(second.reserved, 100 * KIB);
  t.equal(budget.used, 128 * KIB);
});
