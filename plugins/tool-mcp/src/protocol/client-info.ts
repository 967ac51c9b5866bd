import { createRequire } from 'node:module';
import type { Client } from '@modelcontextprotocol/client';

const { version } = createRequire(import.meta.url)('@plugboard/tool-mcp/package.json') as { version: string };

/** How Plugboard introduces itself to servers. */
export const CLIENT = { name: 'plugboard', version };
/** The longest delay of a timer: callers set the limits, and the SDKs want one. */
export const NO_LIMIT = 2 ** 31 - 1;

/** The name and version of the server, for logs. */
export function serverOf(client: Client): string {
  const { name, version } = client.getServerVersion() ?? { name: 'unknown', version: '' };
  return `${name} ${version}`.trim().slice(0, 200);
}
