import { definePlugin, type SessionStore, SessionStores } from '@plugboard/kernel';
import type { Budget } from '@plugboard/kernel/contracts';
import sqlite from '@plugboard/store-sqlite';

/** Bytes that need no reservation of their own: an account takes steps of 64 KiB. */
const SMALL = 32 * 1024;

/** What was read, with more bytes than were reserved then: `turns: 500000 of 0`. */
export const uncounted: string[] = [];
/** The methods that have read more than `SMALL`. */
export const large = new Set<string>();

/** The SQLite store, which compares what it returns with what is reserved. */
export default definePlugin({
  ...sqlite,
  name: 'counted-store',
  summary: 'A SQLite store that finds what is read and not reserved',
  register: (ctx) =>
    sqlite.register({
      ...ctx,
      contribute: (point, value, ...more) =>
        ctx.contribute(
          point,
          point.id === SessionStores.id ? (counted(value as SessionStore, ctx.budgets.memory) as typeof value) : value,
          ...more,
        ),
    }),
});

function counted<T extends object>(store: T, budget: Budget, prefix = ''): T {
  return new Proxy(store, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key);
      const name = prefix + String(key);
      if (typeof member === 'object' && member !== null) return counted(member, budget, `${name}.`);
      if (typeof member !== 'function') return member;
      return async (...args: unknown[]) => {
        const found: unknown = await member.apply(target, args);
        const bytes = JSON.stringify(found)?.length ?? 0;
        if (bytes > SMALL) large.add(name);
        if (bytes > SMALL && budget.used < 2 * bytes) uncounted.push(`${name}: ${bytes} of ${budget.used}`);
        return found;
      };
    },
  });
}
