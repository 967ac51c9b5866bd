import type { CheckContext, ConfigProblem } from '@plugboard/kernel';
import { parseDuration, parseSize } from '@plugboard/kernel';
import type { McpConfig } from '../config.js';
import { findUser, type User } from './user.js';

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

export function launchOf(config: McpConfig, resolvePath: (path: string) => string): Launch {
  const { command, args, env, cwd, user, limits, node } = config;
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
export function checkLaunch({ user, limits }: McpConfig, _: CheckContext): readonly ConfigProblem[] {
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
