import type { ChildProcess } from 'node:child_process';

/**
 * A child is the head of a group of its own where the system has such: what it starts in turn (`npx` starts a shell that starts the server)
 * belongs to it and can be ended with it, and a Ctrl-C at the terminal is not also theirs, so that the server can end them in its own order.
 */
export const OWN_GROUP = process.platform !== 'win32';

/**
 * Sends a signal to the child and whatever it has started, if anybody is left.
 *
 * @returns false where the system does not allow it: the child has become another user's.
 */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals): boolean {
  if (child.pid === undefined) return true;
  try {
    if (OWN_GROUP) process.kill(-child.pid, signal);
    else child.kill(signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/**
 * Children that must not outlive this process. When it is about to exit for whatever reason that Node.js sees (an uncaught error, a second
 * SIGTERM), they are ended at once. Of a SIGKILL it sees nothing: the children then read the end of their standard input, which tells an MCP
 * server to exit. One that does not heed that stays behind, and no parent could prevent it.
 */
const living = new Set<ChildProcess>();

export function endAtExit(child: ChildProcess): void {
  if (living.size === 0) process.on('exit', endAll);
  living.add(child);
}

/** The child has ended. */
export function forget(child: ChildProcess): void {
  living.delete(child);
  if (living.size === 0) process.off('exit', endAll);
}

function endAll(): void {
  for (const child of living) signalGroup(child, 'SIGKILL');
}
