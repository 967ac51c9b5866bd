import { type DestinationStream, destination, type Logger as PinoLogger, pino, stdSerializers } from 'pino';
import type { Clock } from '../base/ambient.js';
import { KERNEL } from '../base/kernel-package.js';
import { readable } from './log-readable.js';
import { type CredentialShapes, createRedactor } from './redactor.js';

/** pino's interface. `log.info({ session }, 'turn ended')`. */
export type Logger = Pick<PinoLogger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'child' | 'isLevelEnabled'>;

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Where log lines go, each with its newline. */
export interface LogSink {
  write(line: string): void;
}

/** Fields that hold a secret, whichever plugin logs them. */
const SECRET_FIELDS = ['apiKey', 'api_key', 'password', 'token'];

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
    fields: [...new Set([...SECRET_FIELDS, ...credentials.flatMap(({ fields = [] }) => fields)])],
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

/** `,"time":"2026-11-21T10:00:00.000Z"`. All but the milliseconds is the same for a whole second. */
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

/** Bytes of lines that are written together, or else what came within so many milliseconds: a write of its own would cost a line more than all the rest. */
const TOGETHER = 8 * 1024;
const WITHIN = 50;
/** What is worth reading at once. pino writes the level first. */
const URGENT = /^\{"level":"(?:warn|error|fatal)"/;

/** Milliseconds that whoever reads the log is given to read its end. */
const LAST_LINES = 1_000;

let stream: ReturnType<typeof destination> | undefined;

/** Written behind the program's back, so that no request waits for it. */
function standardError(): LogSink {
  if (stream === undefined) {
    const opened = destination({ fd: 2, sync: false, minLength: TOGETHER });
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
  // Told to flush while it writes, the stream does nothing: it is told again when it has written.
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
      } else due ??= setTimeout(flush, WITHIN).unref();
    },
  };
}

/** Waits until what was logged to standard error is written. To be called before the process ends: a write under way would not survive it. */
export async function logWritten(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (stream === undefined) return;
  stream.flush(() => resolve());
  const given = setTimeout(resolve, LAST_LINES);
  await promise;
  clearTimeout(given);
}
