import { type CommandAction, parseDuration, UsageError } from '@plugboard/kernel';
import type { TokenBook } from '../token-book.js';
import { readExpiry, whoever } from './read-options.js';
import { showIssued } from './show-issued.js';

const GRACE = '24h';

export const rotate = (book: TokenBook): CommandAction => ({
  summary: 'Makes a token of the same name and rights in the place of another, and prints it this one time',
  positionals: ['ID|NAME'],
  options: {
    grace: {
      value: 'TIME',
      description: `how long the old one is taken beside the new one, such as 1h, or 0s for not at all; left out: ${GRACE}`,
    },
    expires: {
      value: 'WHEN',
      description: 'when the new one expires; left out: after as long a life as the old one was to have',
    },
    project: { value: 'P', description: 'whose token it is, where several projects have one of that name' },
    json: { description: 'for programs' },
  },
  async run(args, terminal) {
    const grace = args.text('grace') ?? GRACE;
    const issued = await book.rotate(args.positionals[0] ?? '', {
      grace: durationIn(grace),
      expiresAt: readExpiry(args, book.clock),
      project: args.text('project'),
      by: whoever(),
    });
    showIssued(issued, args, terminal, [`The old one, ${issued.record.replaces}, is taken for ${grace} more at most.`]);
    return 0;
  },
});

function durationIn(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new UsageError(`--grace: ${(error as Error).message}`);
  }
}
