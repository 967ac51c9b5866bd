import { type DestinationStream, destination, type Logger as PinoLogger, pino, stdSerializers } from 'pino';
import type { Clock } from '../base/ambient.js';
import { KERNEL } from '../base/kernel-package.js';
import { readable } from './log-readable.js';
import { type CredentialShapes, createRedactor } from './redactor.js';

/** pino's interface: `log.info({ file }, 'file written')`. */
export type Logger = Pick<PinoLogger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'child' | 'isLevelEnabled'>;

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Receives log lines, each with its newline. */
export interface LogSink {
  write(line: string): void;
}

/**
 * Creates the logger of one server: JSON lines without secrets.
 * @param options.secrets values that never appear in a line.
 * @param options.credentials what the credentials of the loaded plugins look like.
 */
export function createLogger(options: {
  readonly level: string;
  readonly secrets: Iterable<string>;
  readonly credentials?: Iterable<CredentialShapes>;
  readonly clock: Clock;
  readonly sink?: LogSink | undefined;
}): Logger {
  const sink = options.sink ?? standardError();
  const credentials = [...(options.credentials ?? [])];
  const redact = createRedactor({
    values: options.secrets,
    patterns: credentials.flatMap(({ patterns = [] }) => patterns),
    fields: credentials.flatMap(({ fields = [] }) => fields),
  });
  const redacting: DestinationStream = { write: (line) => sink.write(redact(line)) };
  return pino(
    {
      level: options.level,
      base: { service: 'plugboard', version: KERNEL.version, pid: process.pid },
      timestamp: stamps(options.clock),
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: stdSerializers.errWithCause },
    },
    redacting,
  );
}

/** Formats `,"time":"2026-11-21T10:00:00.000Z"`. Everything but the milliseconds is formatted once a second. */
function stamps(clock: Clock): () => string {
  let second = Number.NaN;
  let start = '';
  return () => {
    const now = Math.floor(clock.now());
    const milliseconds = now % 1000;
    if (now - milliseconds !== second) {
      second = now - milliseconds;
      start = `,"time":"${new Date(second).toISOString().slice(0, -'000Z'.length)}`;
    }
    return `${start}${String(milliseconds).padStart(3, '0')}Z"`;
  };
}

/** Lines are written together: up to so many bytes, or after so many milliseconds. A write for each line costs more than the rest. */
const BATCH_BYTES = 8 * 1024;
const BATCH_DELAY = 50;
/** Lines that are written at once. pino writes the level first. */
const URGENT = /^\{"level":"(?:warn|error|fatal)"/;

/** Milliseconds that the reader of the log has to take its last lines. */
const FLUSH_LIMIT = 1_000;

let stream: ReturnType<typeof destination> | undefined;

/** Writes asynchronously, so that no work waits for the log. */
function standardError(): LogSink {
  if (stream === undefined) {
    const opened = destination({ fd: 2, sync: false, minLength: BATCH_BYTES });
    process.on('exit', () => opened.flushSync());
    stream = opened;
  }
  const lines = stream;
  if (process.stderr.isTTY) {
    return {
      write(line) {
        lines.write(readable(line));
        lines.flush();
      },
    };
  }
  let due: NodeJS.Timeout | undefined;
  let urgent = false;
  // A flush during a write has no effect: repeat it when the write has ended.
  lines.on('drain', () => {
    if (urgent) lines.flush();
    urgent = false;
  });
  const flush = () => {
    clearTimeout(due);
    due = undefined;
    lines.flush();
  };
  return {
    write(line) {
      lines.write(line);
      if (URGENT.test(line)) {
        urgent = true;
        flush();
      } else due ??= setTimeout(flush, BATCH_DELAY).unref();
    },
  };
}

/** Waits until everything logged to standard error is written. Call it before the process ends, or lines may be lost. */
export async function logWritten(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (stream === undefined) return;
  stream.flush(() => resolve());
  const given = setTimeout(resolve, FLUSH_LIMIT);
  await promise;
  clearTimeout(given);
}
