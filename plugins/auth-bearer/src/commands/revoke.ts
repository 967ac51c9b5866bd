import type { CommandAction } from '@plugboard/kernel';
import { titleOf } from '../pick-token.js';
import type { TokenBook } from '../token-book.js';
import { whoever } from './read-options.js';

export const revoke = (book: TokenBook): CommandAction => ({
  summary: 'Makes servers refuse a token from now on',
  positionals: ['ID|NAME'],
  options: { project: { value: 'P', description: 'whose token it is, where several projects have one of that name' } },
  async run(args, terminal) {
    const revoked = await book.revoke(args.positionals[0] ?? '', { by: whoever(), project: args.text('project') });
    terminal.print(`${titleOf(revoked)} is revoked since ${revoked.revokedAt}. A running server refuses it within 10 seconds.`);
    return 0;
  },
});
