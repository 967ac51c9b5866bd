import { readable } from './log-readable.js';
import { defaultLogBuffer, LogWriter } from './log-writer.js';

let writer: LogWriter | undefined;
let onRecovered: (dropped: number) => void = () => {};

/**
 * The writer of this process's standard error; all servers of a process share it. On a terminal,
 * lines are written for people.
 *
 * @param limit bytes of lines that may wait. Only the first call sets it.
 */
export function standardError(limit = defaultLogBuffer()): LogWriter {
  writer ??= new LogWriter({
    to: 2,
    limit,
    onRecovered: (dropped) => onRecovered(dropped),
    ...(process.stderr.isTTY && { format: readable }),
  });
  return writer;
}

/** Sets what happens when lines get through again after some were dropped. */
export function whenRecovered(report: (dropped: number) => void): void {
  onRecovered = report;
}

/** Waits until standard error is written. Call it before the process ends, or lines are lost. */
export async function logWritten(): Promise<void> {
  await writer?.written();
}
