import type { CommandAction } from '@plugboard/kernel/contracts';
import type { TokenRegistry } from '../registry/token-registry.js';
import { printToken } from './print-token.js';
import { currentUser, readCount, readExpiry, readList, readName, readScopes } from './read-options.js';

export const create = (registry: TokenRegistry): CommandAction => ({
  summary: 'Creates a token and prints it once',
  usesState: () => registry.usesState,
  options: {
    project: { value: 'P', required: true, description: 'its project: default, or one listed under projects' },
    name: { value: 'N', required: true, description: 'its name in logs and lists' },
    scopes: { value: 'a,b', description: 'its scopes; default: chat,models:read,sessions:read,sessions:write' },
    agents: { value: 'a,b', description: 'the only agents it may use; default: all agents of its project' },
    expires: { value: 'WHEN', description: 'its expiry: a duration such as 90d or a date such as 2027-01-31; default: never' },
    'requests-per-minute': { value: 'N', description: 'maximum requests per minute' },
    'running-turns': { value: 'N', description: 'maximum turns running at the same time' },
    json: { description: 'print JSON' },
  },
  async run(args, terminal) {
    const issued = await registry.create({
      project: args.text('project') ?? '',
      name: readName(args),
      scopes: readScopes(args),
      agents: readList(args, 'agents'),
      expiresAt: readExpiry(args, registry.clock),
      requestsPerMinute: readCount(args, 'requests-per-minute'),
      runningTurns: readCount(args, 'running-turns'),
      by: currentUser(),
    });
    printToken(issued, args, terminal);
    return 0;
  },
});
