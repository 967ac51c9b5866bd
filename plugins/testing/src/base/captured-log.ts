import type { Clock, Logger } from '@plugboard/kernel';
import { createLogger, type LogSink } from '@plugboard/kernel/internal';

/** A parsed line of the log. @experimental */
export interface LogLine {
  /** `trace`, `debug`, `info`, `warn`, `error` or `fatal`. */
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Collects log lines for assertions. @experimental */
export class CapturedLog implements LogSink {
  readonly lines: LogLine[] = [];

  write(line: string): void {
    this.lines.push(JSON.parse(line));
  }

  /** A logger of the server at level `trace` that writes here. */
  logger(clock: Clock): Logger {
    return createLogger({ level: 'trace', secrets: [], clock, sink: this }).log;
  }
}
