import type { CommandAction } from '@plugboard/kernel';
import type { TokenBook } from '../token-book.js';
import { listIn, readCount, readExpiry, readName, readScopes, whoever } from './read-options.js';
import { showIssued } from './show-issued.js';

export const create = (book: TokenBook): CommandAction => ({
  summary: 'Makes a token, and prints it this one time',
  options: {
    project: { value: 'P', required: true, description: 'the project that it is a token of: default, or one under projects' },
    name: { value: 'N', required: true, description: 'what people call it' },
    scopes: { value: 'a,b', description: 'what it allows; left out: chat,models:read,sessions:read,sessions:write' },
    agents: { value: 'a,b', description: 'the only agents that it reaches; left out: every agent that its project reaches' },
    expires: { value: 'WHEN', description: 'after a time such as 90d, or on a date such as 2027-01-31; left out: never' },
    'requests-per-minute': { value: 'N', description: 'how many requests it may make in a minute' },
    'running-turns': { value: 'N', description: 'how many turns of it may run at once' },
    json: { description: 'for programs' },
  },
  async run(args, terminal) {
    const issued = await book.create({
      project: args.text('project') ?? '',
      name: readName(args),
      scopes: readScopes(args),
      agents: listIn(args, 'agents'),
      expiresAt: readExpiry(args, book.clock),
      requestsPerMinute: readCount(args, 'requests-per-minute'),
      runningTurns: readCount(args, 'running-turns'),
      by: whoever(),
    });
    showIssued(issued, args, terminal);
    return 0;
  },
});
