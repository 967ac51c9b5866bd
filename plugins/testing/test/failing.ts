import type { ContractCase } from '../src/index.js';

/** Runs the cases of a contract and returns the names of those that fail. */
export async function failing(cases: readonly ContractCase[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { name, run } of cases) await run().catch(() => found.push(name));
  return found;
}

/** The message with which a case fails, or undefined if it passes. */
export async function verdict(cases: readonly ContractCase[], name: string): Promise<string | undefined> {
  const found = cases.find((one) => one.name === name);
  if (!found) throw new Error(`no case is called "${name}"; there are:\n${cases.map((one) => one.name).join('\n')}`);
  return found.run().then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}
