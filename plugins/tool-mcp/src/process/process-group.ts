import type { ChildProcess } from 'node:child_process';

/**
 * Whether a server leads its own process group. What it starts (`npx` starts a shell that starts
 * the server) belongs to the group and ends with it, and a Ctrl-C at the terminal does not reach it
 * before Plugboard stops it in order.
 */
export const OWN_GROUP = process.platform !== 'win32';

/** Sends a signal to the server and all it started. @returns false if it runs as another user. */
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
 * Servers to end when this process exits, for whatever reason Node.js notices: an uncaught error, a
 * second SIGTERM. It does not notice SIGKILL. Servers then read the end of their standard input,
 * which tells an MCP server to exit. One that ignores it keeps running.
 */
const running = new Set<ChildProcess>();

export function endAtExit(child: ChildProcess): void {
  if (running.size === 0) process.on('exit', endAll);
  running.add(child);
}

/** To call when the server has ended. */
export function forget(child: ChildProcess): void {
  running.delete(child);
  if (running.size === 0) process.off('exit', endAll);
}

function endAll(): void {
  for (const child of running) signalGroup(child, 'SIGKILL');
}
