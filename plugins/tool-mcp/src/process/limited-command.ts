import type { Launch, ResourceLimits } from './launch.js';

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
