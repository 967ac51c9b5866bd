import t, { type Test } from 'tap';
import { entry } from './entry.js';
import { ERAS, type Era, type McpServer, mcpServer } from './http-server.js';

/** A server of an era, and an entry that is ready. */
export async function started(t: Test, era: Era, prepare: (server: McpServer) => void = () => {}, options: object = {}) {
  const server = await mcpServer(t, era);
  prepare(server);
  const files = entry(t, { url: server.url, ...options });
  await files.start();
  await files.logged(/is ready/);
  return { server, files };
}

/** Runs a test against a server of each era. */
export function inBothEras(name: string, run: (t: Test, era: Era) => Promise<void>): void {
  t.test(name, async (t) => {
    for (const era of ERAS) await t.test(`${era} era`, (t) => run(t, era));
  });
}
