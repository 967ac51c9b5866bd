import type { McpConfig } from './config.js';

/** What to run, with every path absolute. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  /** What the configuration adds to the environment. Secret. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export function launchOf(config: McpConfig, resolvePath: (path: string) => string): Launch {
  const { command, args, env, cwd } = config;
  return { command: /^\.\.?[/\\]/.test(command) ? resolvePath(command) : command, args, env, cwd: resolvePath(cwd) };
}

/**
 * What of this process's environment goes to a child: where programs are, whose home and temporary files, what language and time zone.
 * Never all of it: it holds the keys of model providers and databases. Proxy addresses stay out as well, for they may hold a password.
 * The first line of names, and the last for Windows, are those that the MCP SDK hands on.
 */
const INHERITED = [
  ...['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'],
  ...['LANG', 'LC_ALL', 'TZ', 'TMPDIR'],
  ...['APPDATA', 'HOMEDRIVE', 'HOMEPATH', 'LOCALAPPDATA', 'PROCESSOR_ARCHITECTURE', 'PROGRAMFILES', 'SYSTEMDRIVE', 'SYSTEMROOT'],
  ...['TEMP', 'USERNAME', 'USERPROFILE'],
];

/** The environment of a child. What the configuration says wins. */
export function environmentOf(launch: Launch, own: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const inherited: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = own[name];
    if (value !== undefined) inherited[name] = value;
  }
  return { ...inherited, ...launch.env };
}
