import type { Readable } from 'node:stream';
import type { Clock } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';

/** Milliseconds over which bytes are counted, and for which reading pauses. */
const INTERVAL = 1_000;

/** Reads a stream no faster than so many bytes a second: the pipe fills up, its writer waits. */
export function readSlowly(stream: Readable, bytesPerSecond: number, clock: Clock, onData: (chunk: Buffer) => void): void {
  let [since, read] = [clock.monotonic(), 0];
  let timer: Timer | undefined;
  stream.once('close', () => timer?.cancel());
  stream.on('data', (chunk: Buffer) => {
    onData(chunk);
    const now = clock.monotonic();
    if (now - since >= INTERVAL) [since, read] = [now, 0];
    read += chunk.length;
    if (read <= bytesPerSecond) return;
    stream.pause();
    timer = clock.after(INTERVAL, () => stream.resume());
  });
}
