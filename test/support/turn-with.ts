import type { ModelRequest } from '@plugboard/kernel';
import { Account, Budget, OPEN, type ToolDeclaration } from '@plugboard/kernel/contracts';

/** A request of a turn whose caller may hold half of the limit, in bytes. */
export function turnWith(limit: number, tools: readonly ToolDeclaration[]) {
  const budget = new Budget({ name: 'memory', unit: 'bytes', limit, setting: 'limits.memory' });
  const account = new Account(budget, OPEN);
  return { budget, request: { account, tools } satisfies Partial<ModelRequest>, end: account.hold() };
}
