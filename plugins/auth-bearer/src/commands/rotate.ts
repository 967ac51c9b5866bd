import { parseDuration } from '@plugboard/kernel';
import { type CommandAction, UsageError } from '@plugboard/kernel/contracts';
import type { TokenRegistry } from '../registry/token-registry.js';
import { printToken } from './print-token.js';
import { currentUser, readExpiry } from './read-options.js';

const GRACE = '24h';
/** Milliseconds: 10,000 days. */
const MAX_GRACE = 10_000 * 86_400_000;

export const rotate = (registry: TokenRegistry): CommandAction => ({
  summary: 'Replaces a token by a new one with the same rights, and prints it once',
  usesState: () => registry.usesState,
  positionals: ['ID|NAME'],
  options: {
    grace: {
      value: 'TIME',
      description: `how long the old token stays valid, such as 1h, or 0s; default: ${GRACE}`,
    },
    expires: {
      value: 'WHEN',
      description: 'expiry of the new token; default: the lifetime of the old one',
    },
    project: { value: 'P', description: 'its project, if several projects have a token of that name' },
    json: { description: 'print JSON' },
  },
  async run(args, terminal) {
    const grace = args.text('grace') ?? GRACE;
    const issued = await registry.rotate(args.positionals[0] ?? '', {
      grace: readDuration(grace),
      expiresAt: readExpiry(args, registry.clock),
      project: args.text('project'),
      by: currentUser(),
    });
    printToken(issued, args, terminal, [`The old token ${issued.record.replaces} stays valid for at most ${grace}.`]);
    return 0;
  },
});

function readDuration(text: string): number {
  try {
    const grace = parseDuration(text);
    if (grace > MAX_GRACE) throw new Error(`${text} is too long; use at most 10000d`);
    return grace;
  } catch (error) {
    throw new UsageError(`--grace: ${(error as Error).message}`);
  }
}
