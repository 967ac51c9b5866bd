import { readFileSync } from 'node:fs';
import { type ConfigProblem, parseDuration, parseSize } from '@plugboard/kernel';
import type { McpConfig } from '../config.js';

/** How to run a server. Paths are absolute. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  /** What the configuration adds to the environment. Secret. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Undefined for the user of this process. */
  readonly user: User | undefined;
  readonly limits: ResourceLimits;
  /** Options of Node.js for the server. Undefined to start it without any. */
  readonly nodeOptions: readonly string[] | undefined;
}

/** Limits of each process of the server; an absent one is inherited. */
export interface ResourceLimits {
  /** In bytes. */
  readonly addressSpace?: number;
  /** In seconds. */
  readonly cpuTime?: number;
  readonly openFiles?: number;
  readonly processes?: number;
}

export function launchOf(command: string, config: McpConfig, resolvePath: (path: string) => string): Launch {
  const { args = [], env = {}, cwd = '.', user, limits = {}, node } = config;
  const { addressSpace, cpuTime, openFiles, processes } = limits;
  return {
    command: /^\.\.?[/\\]/.test(command) ? resolvePath(command) : command,
    args,
    env,
    cwd: resolvePath(cwd),
    user: user === undefined ? undefined : findUser(user),
    limits: {
      ...(addressSpace !== undefined && { addressSpace: parseSize(addressSpace) }),
      ...(cpuTime !== undefined && { cpuTime: Math.ceil(parseDuration(cpuTime) / 1000) }),
      ...(openFiles !== undefined && { openFiles }),
      ...(processes !== undefined && { processes }),
    },
    nodeOptions: node && nodeOptions(node, resolvePath),
  };
}

/** Finds options that this system cannot follow. */
export function checkLaunch({ user, limits = {} }: McpConfig): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (process.platform === 'win32') {
    if (user !== undefined) problems.push({ path: ['user'], message: 'is not supported on Windows' });
    if (Object.keys(limits).length > 0) problems.push({ path: ['limits'], message: 'is not supported on Windows' });
  } else if (user !== undefined && !findUser(user)) {
    problems.push({ path: ['user'], message: `"${user}" is not in /etc/passwd: create the user, or set \`uid:gid\`` });
  }
  return problems;
}

/** https://nodejs.org/docs/latest-v24.x/api/permissions.html */
function nodeOptions(node: NonNullable<McpConfig['node']>, resolvePath: (path: string) => string): readonly string[] {
  return [
    '--permission',
    ...node.read.map((path) => `--allow-fs-read=${resolvePath(path)}`),
    ...node.write.map((path) => `--allow-fs-write=${resolvePath(path)}`),
    ...(node.childProcesses ? ['--allow-child-process'] : []),
    ...(node.memory === undefined ? [] : [`--max-old-space-size=${Math.ceil(parseSize(node.memory) / 1024 ** 2)}`]),
  ];
}

/** A user of the operating system. */
interface User {
  readonly uid: number;
  readonly gid: number;
  /** Undefined if the user was given by numbers. */
  readonly name?: string;
  readonly home?: string;
}

/** @param user a name of `/etc/passwd`, or `uid:gid`. @returns undefined if there is none. */
function findUser(user: string): User | undefined {
  const [, uid, gid] = /^(\d+):(\d+)$/.exec(user) ?? [];
  if (uid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  const line = passwd().find((fields) => fields[0] === user);
  if (!line) return undefined;
  const [name = user, , id, group, , home = '/'] = line;
  return { uid: Number(id), gid: Number(group), name, home };
}

function passwd(): readonly (readonly string[])[] {
  try {
    return readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => line.split(':'));
  } catch {
    return []; // systems without this file have no named users
  }
}

interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** The options of `ulimit`, in the units of POSIX shells. */
const OPTIONS: Readonly<Record<keyof ResourceLimits, (value: number) => string>> = {
  addressSpace: (bytes) => `-v ${Math.ceil(bytes / 1024)}`,
  cpuTime: (seconds) => `-t ${seconds}`,
  openFiles: (count) => `-n ${count}`,
  processes: (count) => `-u ${count}`,
};

/** What to run so that limits hold: a shell that becomes the program, with it as parameters. */
export function limitedCommand({ command, args, limits }: Launch): Command {
  const set = (Object.keys(OPTIONS) as (keyof ResourceLimits)[]).flatMap((name) => {
    const value = limits[name];
    return value === undefined ? [] : [`ulimit ${OPTIONS[name](value)}`];
  });
  if (set.length === 0) return { command, args };
  return { command: '/bin/sh', args: ['-c', `${set.join(' && ')} && exec "$0" "$@"`, command, ...args] };
}
