import type { DeclareTest } from '../src/index.js';

/** A test that a suite declares. */
export interface Case {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/** The tests that a suite declares. */
export function casesOf(declare: (test: DeclareTest) => void): readonly Case[] {
  const cases: Case[] = [];
  declare((name, run) => cases.push({ name, run }));
  return cases;
}

/** Runs the cases of a contract and returns the names of those that fail. */
export async function failing(cases: readonly Case[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { name, run } of cases) await run().catch(() => found.push(name));
  return found;
}

/** The message with which a case fails, or undefined if it passes. */
export async function verdict(cases: readonly Case[], name: string): Promise<string | undefined> {
  const found = cases.find((one) => one.name === name);
  if (!found) throw new Error(`no case is called "${name}"; there are:\n${cases.map((one) => one.name).join('\n')}`);
  return found.run().then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}
