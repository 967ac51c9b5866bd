import type { CommandArguments, CommandTerminal } from '@plugboard/kernel';
import { titleOf } from '../pick-token.js';
import type { IssuedToken } from '../token-book.js';

/**
 * Prints a token that was just made, alone on standard output, so that `$(plugboard token create …)` is the token. What people should know
 * besides goes to standard error.
 */
export function showIssued(
  { token, record }: IssuedToken,
  args: CommandArguments,
  terminal: CommandTerminal,
  more: readonly string[] = [],
): void {
  const { sha256, ...shown } = record;
  if (args.has('json')) {
    terminal.print(JSON.stringify({ token, ...shown }, undefined, 2));
    return;
  }
  const { scopes, agents, expiresAt } = record;
  const reach = `${scopes.join(', ')}${agents ? `, with no agents but ${agents.join(', ')}` : ''}`;
  terminal.print(token);
  terminal.note(
    [
      `This is ${titleOf(record)}. It is shown only now: keep it safe.`,
      `It allows ${reach}; it ${expiresAt ? `expires at ${expiresAt}` : 'does not expire'}.`,
      ...more,
      'A running server knows it within 10 seconds.',
    ].join('\n'),
  );
}
