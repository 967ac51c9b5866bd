import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { type Entry, entry, fixture } from './entry.js';

/** The error of a call whose server ended. */
export const LOST = {
  code: 'mcp_call_lost',
  message: /^the MCP server of tools\.files ended during this call and is being restarted: /,
};

/** An entry that runs the fixture and is ready. */
export async function started(t: Test, ...args: string[]) {
  const files = entry(t, fixture(...args));
  await files.start();
  await files.logged(/is ready/);
  return files;
}

/** A file that a fixture looks for; `put` and `remove` it. */
export function flag(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'flag');
  return { path, put: () => writeFileSync(path, ''), remove: () => rmSync(path) };
}

/** Ends the server during a call. @returns the line of the log. */
export async function crash(t: Test, files: Entry, how: Record<string, unknown> = { code: 7 }) {
  await t.rejects(files.call('crash', how), LOST);
  return files.logged(/has ended/);
}
