import type { Readable } from 'node:stream';
import { Account } from '@plugboard/kernel/contracts';
import type { LineSplitter } from './line-splitter.js';

/**
 * Reads the lines of a stream. What is held of a line that is not complete is reserved first
 * (S-75); while there is no memory for it, nothing is read, and the process that writes has to
 * wait.
 */
export function readLines(stream: Readable, lines: LineSplitter, account: Account): void {
  const leave = account.hold();
  const closed = new AbortController();
  let reserved = 0;
  stream.once('close', () => {
    closed.abort();
    leave();
  });
  const take = (chunk: Buffer) => {
    lines.push(chunk);
    const spare = reserved - Account.costOf(lines.held);
    if (spare <= 0) return;
    account.release(spare);
    reserved -= spare;
  };
  stream.on('data', (chunk: Buffer) => {
    const missing = Account.costOf(lines.held + chunk.length) - reserved;
    const isReserved = account.reserve(missing);
    if (isReserved) reserved += missing;
    if (isReserved) return take(chunk);
    stream.pause();
    account.wait(missing, closed.signal).then(
      () => {
        reserved += missing;
        take(chunk);
        stream.resume();
      },
      () => {}, // the stream was closed
    );
  });
}
