import type { Clock } from '../host/base/ambient.js';
import { createLogger, type Logger, type LogSink } from '../host/log/log.js';

/** A line of the log, as it would be written. */
export interface LogLine {
  /** `trace`, `debug`, `info`, `warn`, `error` or `fatal`. */
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Where a log goes to be looked at. */
export class CapturedLog implements LogSink {
  readonly lines: LogLine[] = [];

  write(line: string): void {
    this.lines.push(JSON.parse(line));
  }

  /** The server's logger, at its most talkative, writing here. */
  logger(clock: Clock): Logger {
    return createLogger({ level: 'trace', secrets: [], clock, sink: this });
  }
}
