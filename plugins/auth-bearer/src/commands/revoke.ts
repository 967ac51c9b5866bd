import type { CommandAction } from '@plugboard/kernel/contracts';
import { describeToken } from '../registry/select-token.js';
import type { TokenRegistry } from '../registry/token-registry.js';
import { currentUser } from './read-options.js';

export const revoke = (registry: TokenRegistry): CommandAction => ({
  summary: 'Revokes a token',
  usesState: () => registry.usesState,
  positionals: ['ID|NAME'],
  options: { project: { value: 'P', description: 'its project, if several projects have a token of that name' } },
  async run(args, terminal) {
    const revoked = await registry.revoke(args.positionals[0] ?? '', { by: currentUser(), project: args.text('project') });
    terminal.print(
      `${describeToken(revoked)} was revoked at ${revoked.revokedAt}. A running server refuses it within 10 seconds.`,
    );
    return 0;
  },
});
