import type { CommandArguments, CommandTerminal } from '@plugboard/kernel/contracts';
import { describeToken } from '../registry/select-token.js';
import type { IssuedToken } from '../registry/token-registry.js';

/** Prints a new token alone on standard output, for `$(plugboard token create …)`. */
export function printToken(
  { token, record }: IssuedToken,
  args: CommandArguments,
  terminal: CommandTerminal,
  notes: readonly string[] = [],
): void {
  const { sha256, ...shown } = record;
  if (args.has('json')) {
    terminal.print(JSON.stringify({ token, ...shown }, undefined, 2));
    return;
  }
  const { scopes, agents, expiresAt } = record;
  terminal.print(token);
  terminal.note(
    [
      `This is ${describeToken(record)}. It is shown only once: store it safely.`,
      `Scopes: ${scopes.join(', ')}.${agents ? ` Agents: ${agents.join(', ')}.` : ''} Expires: ${expiresAt ?? 'never'}.`,
      ...notes,
      'A running server with this provider accepts it within 10 seconds.',
    ].join('\n'),
  );
}
