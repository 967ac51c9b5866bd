import { userInfo } from 'node:os';
import { type Clock, type CommandArguments, DEFAULT_SCOPES, SCOPES, type Scope, suggestion, UsageError } from '@plugboard/kernel';
import { parseExpiry } from '../expiry.js';

/** What several actions read alike. @throws UsageError */

export function readName(args: CommandArguments): string {
  const name = args.text('name') ?? '';
  if (!/^[^\p{C}]{1,64}$/u.test(name) || name.trim() === '') throw new UsageError('--name takes 1 to 64 printable characters');
  return name;
}

export function readScopes(args: CommandArguments): readonly Scope[] {
  return (
    listIn(args, 'scopes')?.map((word) => {
      const scope = SCOPES.find((known) => known === word);
      if (scope === undefined) throw new UsageError(`--scopes: there is no scope "${word}"${suggestion(word, SCOPES)}`);
      return scope;
    }) ?? DEFAULT_SCOPES
  );
}

/** Milliseconds since 1970. */
export function readExpiry(args: CommandArguments, clock: Clock): number | undefined {
  const text = args.text('expires');
  if (text === undefined) return undefined;
  const time = parseExpiry(text, clock.now());
  if (time === undefined || Number.isNaN(new Date(time).getTime()))
    throw new UsageError(`--expires takes a duration such as 90d, or a date such as 2027-01-31, not "${text}"`);
  if (time <= clock.now()) throw new UsageError(`--expires: ${text} is not in the future`);
  return time;
}

export function readCount(args: CommandArguments, option: string): number | undefined {
  const text = args.text(option);
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--${option} takes a whole number from 1 on, not "${text}"`);
  return Number(text);
}

/** `a,b`. */
export function listIn(args: CommandArguments, option: string): readonly string[] | undefined {
  const words = args
    .text(option)
    ?.split(',')
    .map((word) => word.trim());
  if (words?.includes('')) throw new UsageError(`--${option} takes names with commas between them: a,b`);
  return words && [...new Set(words)];
}

/** Who runs the command. Some containers have a user without a name. */
export function whoever(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}
