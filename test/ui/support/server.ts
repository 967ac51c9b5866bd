import type { Test } from 'tap';
import { EQUIPPED, equipment } from '../../support/equipped.js';
import { TestServer } from '../../support/test-server.js';

/** What the playground uses. */
export const SURFACES = '  conversations: {}\n  playground: { suggestions: [What can you do?] }\n';

export interface PlaygroundServerOptions {
  /** Lines below `transports`. */
  readonly surfaces?: string;
  /** More agents, and more sections behind them. */
  readonly yaml?: string;
  readonly files?: Readonly<Record<string, string>>;
}

/** A server with the playground and two agents, one of which has real tools. */
export function startPlayground(t: Test, { surfaces = SURFACES, yaml = '', files }: PlaygroundServerOptions = {}) {
  return TestServer.start(t, EQUIPPED.replace('  sse: {}\n', `  sse: {}\n${surfaces}`) + yaml, {
    ...equipment,
    files: { ...equipment.files, ...files },
  });
}
