import { createRedactor } from '@plugboard/kernel';
import type { Launch } from './launch.js';

/** Shorter values, such as `1` or `true`, are not secrets. */
const MIN_LENGTH = 6;

/** An option whose value is a secret: `--token`, `--api-key=…`, `DB_PASSWORD=…`. */
const SECRET_OPTION = /(?:token|secret|passw|credential|api[-_]?key|auth)[\w-]*(?:=(.+))?$/i;
/** Text that is only random: letters and digits, too long for a word. */
const RANDOM = /^(?=.*[0-9])(?=.*[A-Za-z])[\w+=~.-]{20,}$/;

/** Removes the secrets of a launch from a text: all of `env`, what looks secret in `args`. */
export function redactorOf({ env, args }: Launch): (text: string) => string {
  return createRedactor({ values: [...Object.values(env), ...args.flatMap(secretsOf)], minLength: MIN_LENGTH });
}

function secretsOf(argument: string, index: number, args: readonly string[]): readonly string[] {
  const [isOption, value] = SECRET_OPTION.exec(argument.replace(/\s.*/s, '')) ?? [];
  const next = args[index + 1];
  if (value !== undefined) return [argument.slice(argument.indexOf('=') + 1)];
  if (isOption !== undefined && argument.startsWith('-') && next !== undefined) return [next];
  return RANDOM.test(argument) ? [argument] : passwordOf(argument);
}

/** The password of a URL. */
function passwordOf(argument: string): readonly string[] {
  const { password } = URL.parse(argument) ?? { password: '' };
  return password === '' ? [] : [password, decodeURIComponent(password)];
}
