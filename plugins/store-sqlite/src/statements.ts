import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock, SessionId } from '@plugboard/kernel';

export type Statements<N extends string> = Readonly<Record<N, StatementSync>>;

/** @param sql texts that were written here: whatever comes from outside is bound to their parameters. */
export function prepareAll<N extends string>(database: DatabaseSync, sql: Readonly<Record<N, string>>): Statements<N> {
  return Object.fromEntries(
    Object.entries<string>(sql).map(([name, text]) => [name, database.prepare(text)]),
  ) as unknown as Statements<N>;
}

/** The three columns of a session's name. */
export function columns({ project, agent, key }: SessionId): [string, string, string] {
  return [project, agent, key];
}

/** The wall clock, because what is kept outlives the process. Stamps are whole numbers, which a clock need not give. */
export function stamp(clock: Clock): number {
  return Math.floor(clock.now());
}
