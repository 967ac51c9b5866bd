import type { Budget } from '../base/budget.js';
import { type AdjustableLogger, type CreateLoggerOptions, createLogger, type LogSink } from './log.js';
import { defaultLogBuffer, LogWriter } from './log-writer.js';
import { standardError, whenRecovered } from './standard-error.js';

interface ServerLogOptions extends Omit<CreateLoggerOptions, 'sink' | 'auditSink'> {
  /** Bytes of lines that may wait. By default a 64th of the heap limit, 16 MiB at most. */
  readonly buffer?: number | undefined;
  /** The absolute path of a file for audit lines. By default they go where the others go. */
  readonly auditFile?: string | undefined;
  /** Receives the lines in place of standard error. */
  readonly sink?: LogSink | undefined;
}

export interface ServerLog extends AdjustableLogger {
  /** What bounds the lines that wait to be written. */
  readonly budgets: readonly Budget[];
  /** Opens its files again, after they were rotated. */
  reopen(): void;
  /** Writes what waits and closes its files. */
  end(): Promise<void>;
}

/** Creates the log of a server. Opens no file before the first line. */
export function createServerLog({
  buffer: limit = defaultLogBuffer(),
  auditFile,
  sink,
  ...options
}: ServerLogOptions): ServerLog {
  const stderr = sink ? undefined : standardError(limit);
  const onRecovered = (dropped: number) => {
    log.warn({ dropped }, 'log lines were dropped: the destination was full, closed or too slow');
  };
  if (stderr) whenRecovered(onRecovered);
  const audits = auditFile === undefined ? undefined : new LogWriter({ to: auditFile, limit, onRecovered });
  const { log, adjust, redact } = createLogger({ ...options, sink: sink ?? standardError(limit), auditSink: audits });
  return {
    log,
    adjust,
    redact,
    budgets: stderr ? [stderr.budget] : [],
    reopen: () => audits?.reopen(),
    end: async () => audits?.end(),
  };
}
