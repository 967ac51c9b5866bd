import { type DestinationStream, destination, type Logger as PinoLogger, pino, stdSerializers } from 'pino';
import type { Clock } from './ambient.js';
import { KERNEL } from './kernel-package.js';
import { readable } from './log-readable.js';
import { redactor } from './redaction.js';

/** pino's interface. `log.info({ session }, 'turn ended')`. */
export type Logger = Pick<PinoLogger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'child' | 'isLevelEnabled'>;

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Where log lines go, each with its newline. */
export interface LogSink {
  write(line: string): void;
}

/** Where a request's credentials stand. What is secret by its name or its text is taken out by redaction.ts. */
const SECRET_PATHS = ['req.headers.authorization', 'req.headers.cookie', 'req.headers["sec-websocket-protocol"]'];

/**
 * The logger of one server: JSON lines, without anything secret.
 * @param secrets values that never appear in a line, wherever they come from.
 */
export function createLogger(options: {
  readonly level: string;
  readonly secrets: Iterable<string>;
  readonly clock: Clock;
  readonly sink?: LogSink | undefined;
}): Logger {
  const sink = options.sink ?? standardError();
  const redact = redactor(options.secrets);
  const redacting: DestinationStream = { write: (line) => sink.write(redact(line)) };
  return pino(
    {
      level: options.level,
      base: { service: 'plugboard', version: KERNEL.version, pid: process.pid },
      timestamp: () => `,"time":"${new Date(options.clock.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: stdSerializers.errWithCause },
      redact: { paths: SECRET_PATHS, censor: '[redacted]' },
    },
    redacting,
  );
}

/** Milliseconds that whoever reads the log is given to read its end. */
const LAST_LINES = 1_000;

let stream: ReturnType<typeof destination> | undefined;

/** Written behind the program's back, so that no request waits for it. */
function standardError(): LogSink {
  if (stream === undefined) {
    const opened = destination({ fd: 2, sync: false, minLength: 1 });
    process.on('exit', () => opened.flushSync());
    stream = opened;
  }
  const lines = stream;
  return { write: (line) => void lines.write(process.stderr.isTTY ? readable(line) : line) };
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
