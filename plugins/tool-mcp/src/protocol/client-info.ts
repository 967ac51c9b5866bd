import { createRequire } from 'node:module';

const { version } = createRequire(import.meta.url)('@plugboard/tool-mcp/package.json') as { version: string };

/** How Plugboard introduces itself to servers. */
export const CLIENT = { name: 'plugboard', version };
/** The longest delay of a timer: callers set the limits, and the SDKs want one. */
export const NO_LIMIT = 2 ** 31 - 1;
