import type { Launch } from './launch.js';

/**
 * The variables of this process that a server inherits: where programs, the home and temporary
 * files are, the language and the time zone. All others stay out, because they may hold keys of
 * model providers and databases; proxy addresses, because they may hold a password.
 *
 * This does not hide them from a process of the same user: on Linux it can read
 * `/proc/<pid>/environ` of this process. Only another user (`user`) or the permission model of
 * Node.js (`node`) prevents that.
 */
const INHERITED = [
  ...['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'],
  ...['LANG', 'LC_ALL', 'TZ', 'TMPDIR'],
  ...['APPDATA', 'HOMEDRIVE', 'HOMEPATH', 'LOCALAPPDATA', 'PROCESSOR_ARCHITECTURE', 'PROGRAMFILES', 'SYSTEMDRIVE', 'SYSTEMROOT'],
  ...['TEMP', 'USERNAME', 'USERPROFILE'],
];

/** The environment of a server. The configuration takes precedence. */
export function environmentOf({ env, user, nodeOptions }: Launch, own: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const inherited: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = own[name];
    if (value !== undefined) inherited[name] = value;
  }
  const options = [...(nodeOptions?.map(quoted) ?? []), ...(env.NODE_OPTIONS === undefined ? [] : [env.NODE_OPTIONS])];
  return { ...inherited, ...ofUser(user), ...env, ...(options.length > 0 && { NODE_OPTIONS: options.join(' ') }) };
}

/** Another user's home and name. A user given by numbers has no name. */
function ofUser(user: Launch['user']): Record<string, string> {
  if (!user) return {};
  const { name, home = '/' } = user;
  return { HOME: home, ...(name === undefined ? {} : { USER: name, LOGNAME: name }) };
}

/** Quotes an option for `NODE_OPTIONS`. */
function quoted(option: string): string {
  return /[\s"\\]/.test(option) ? `"${option.replaceAll(/["\\]/g, '\\$&')}"` : option;
}
