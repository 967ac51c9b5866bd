import { userInfo } from 'node:os';
import type { Clock } from '@plugboard/kernel';
import { type CommandArguments, DEFAULT_SCOPES, SCOPES, type Scope, suggestion, UsageError } from '@plugboard/kernel/contracts';
import { parseExpiry } from '../tokens/expiry.js';

/** Options that several actions share. Each function throws a UsageError for an invalid one. */

export function readName(args: CommandArguments): string {
  const name = args.text('name') ?? '';
  if (!/^[^\p{C}]{1,64}$/u.test(name) || name.trim() === '')
    throw new UsageError('--name must have 1 to 64 printable characters');
  return name;
}

export function readScopes(args: CommandArguments): readonly Scope[] {
  return (
    readList(args, 'scopes')?.map((word) => {
      const scope = SCOPES.find((known) => known === word);
      if (scope === undefined) throw new UsageError(`--scopes: unknown scope "${word}"${suggestion(word, SCOPES)}`);
      return scope;
    }) ?? DEFAULT_SCOPES
  );
}

/** Milliseconds since the epoch. */
export function readExpiry(args: CommandArguments, clock: Clock): number | undefined {
  const text = args.text('expires');
  if (text === undefined) return undefined;
  const time = parseExpiry(text, clock.now());
  if (time === undefined || Number.isNaN(new Date(time).getTime()))
    throw new UsageError(`--expires must be a duration such as 90d or a date such as 2027-01-31, not "${text}"`);
  if (time <= clock.now()) throw new UsageError(`--expires: ${text} is not in the future`);
  return time;
}

export function readCount(args: CommandArguments, option: string): number | undefined {
  const text = args.text(option);
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--${option} must be a positive integer, not "${text}"`);
  return Number(text);
}

/** A list such as `a,b`. */
export function readList(args: CommandArguments, option: string): readonly string[] | undefined {
  const words = args
    .text(option)
    ?.split(',')
    .map((word) => word.trim());
  if (words?.includes('')) throw new UsageError(`--${option} must be a comma-separated list such as a,b`);
  return words && [...new Set(words)];
}

/** The operating system user. In some containers it has no name. */
export function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}
