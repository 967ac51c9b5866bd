import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from '@plugboard/kernel';
import type { SessionId } from '@plugboard/kernel/contracts';

export type Statements<N extends string> = Readonly<Record<N, StatementSync>>;

/** @param sql written in this plugin. Values from outside are bound to its parameters. */
export function prepareAll<N extends string>(database: DatabaseSync, sql: Readonly<Record<N, string>>): Statements<N> {
  return Object.fromEntries(
    Object.entries<string>(sql).map(([name, text]) => [name, database.prepare(text)]),
  ) as unknown as Statements<N>;
}

/** The columns `project`, `agent` and `key`. */
export function columns({ project, agent, key }: SessionId): [string, string, string] {
  return [project, agent, key];
}

/** Milliseconds since the epoch, as an integer: rows outlive the process. */
export function timestamp(clock: Clock): number {
  return Math.floor(clock.now());
}
