import { writeSync } from 'node:fs';
import { placeOf } from '@plugboard/kernel/internal';
import { runningCalls } from './running-calls.js';

const CURE = 'a plugin must not end the process: throw an error instead, or send it SIGTERM';

/**
 * Reports a `process.exit()` that the program did not call itself, and makes the exit code 1 if it
 * is 0: it would pass for a success otherwise.
 *
 * @param isServer whether the process is a server. Then every such call is a mistake: it cuts what
 * runs. Otherwise only while plugins are loaded: a command of a plugin may end the process.
 * @returns what ends the watch, to be called before the program exits itself.
 */
export function reportForeignExit(isServer: boolean): () => void {
  const onExit = (code: number) => {
    const place = callerOfExit();
    const calls = runningCalls();
    if (place === undefined || (calls.length === 0 && !isServer)) return;
    const own = calls.filter(({ path }) => place.startsWith(`${path}:`));
    const texts = (own.length > 0 ? own : calls).map(({ text }) => text);
    const during = calls.length === 0 ? 'while the server ran' : `during ${texts.join(' or ')}`;
    writeSync(2, `plugboard: process.exit(${code}) was called ${during}, at ${place}; ${CURE}\n`);
    if (code === 0) process.exitCode = 1;
  };
  process.on('exit', onExit);
  return () => void process.off('exit', onExit);
}

/** The file and line that called `process.exit`, if that is not this program. */
function callerOfExit(): string | undefined {
  const exit = new Error('exit');
  // Packages such as signal-exit put their own frames above.
  const [, below] = exit.stack?.split(/^ +at process\.exit .*$/m) ?? [];
  exit.stack = below ?? '';
  return placeOf(exit);
}
