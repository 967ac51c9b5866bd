import { type LoggerOptions, type Logger as PinoLogger, pino } from 'pino';
import type { Clock } from '../base/ambient.js';
import { KERNEL } from '../base/kernel-package.js';
import { escapeC1 } from './control-characters.js';
import { errorFields } from './error-fields.js';
import { type CredentialShapes, createRedactor } from './redactor.js';

/** pino's interface: `log.info({ file }, 'file written')`. @public */
export type Logger = Pick<PinoLogger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'child' | 'isLevelEnabled'>;

/** The property of a logger that holds the logger of its audit lines. */
export const AUDIT = Symbol('plugboard.audit');

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Receives log lines, each with its newline. @public */
export interface LogSink {
  write(line: string): void;
}

export interface CreateLoggerOptions {
  readonly level: string;
  /** Values that never appear in a line. */
  readonly secrets: Iterable<string>;
  /** What the credentials of the loaded plugins look like. */
  readonly credentials?: Iterable<CredentialShapes>;
  readonly clock: Clock;
  readonly sink: LogSink;
  /** Receives audit lines. By default the same as the others. */
  readonly auditSink?: LogSink | undefined;
}

/** A logger whose level and secrets can change, for itself and for its children. */
export interface AdjustableLogger {
  readonly log: Logger;
  adjust(settings: Pick<CreateLoggerOptions, 'level' | 'secrets' | 'credentials'>): void;
  /** Replaces secrets in a text, as in its lines. */
  redact(text: string): string;
}

/** Creates the logger of a server: JSON lines without secrets. `audit` ignores the level. */
export function createLogger(options: CreateLoggerOptions): AdjustableLogger {
  let redact = redactorOf(options);
  const children = new WeakRefs<PinoLogger>();
  const destination = (to: LogSink) => ({ write: (line: string) => to.write(escapeC1(redact(line))) });
  const settings: LoggerOptions = {
    timestamp: stamps(options.clock),
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: errorFields },
  };
  const base = { service: 'plugboard', version: KERNEL.version, pid: process.pid };
  const { sink, auditSink = sink } = options;
  const onChild = (child: PinoLogger) => children.add(child);
  const log = pino({ ...settings, level: options.level, base, onChild }, destination(sink));
  // `audit` adds the bindings of its logger. pino leaves the process id out of them.
  const audits = pino({ ...settings, level: 'info', base: { pid: process.pid } }, destination(auditSink));
  return {
    log: Object.assign(log, { [AUDIT]: audits }), // children inherit it
    adjust(settings) {
      redact = redactorOf(settings);
      if (settings.level === log.level) return;
      for (const one of [log, ...children.all()]) one.level = settings.level;
    },
    redact: (text) => redact(text),
  };
}

function redactorOf({ secrets, credentials = [] }: Pick<CreateLoggerOptions, 'secrets' | 'credentials'>) {
  const shapes = [...credentials];
  return createRedactor({
    values: secrets,
    patterns: shapes.flatMap(({ patterns = [] }) => patterns),
    fields: shapes.flatMap(({ fields = [] }) => fields),
  });
}

/** Formats `,"time":"2026-11-21T10:00:00.000Z"`. The seconds are formatted once a second. */
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

/** Weak references to objects: each is dropped when nothing else refers to its object. */
class WeakRefs<T extends object> {
  readonly #refs = new Set<WeakRef<T>>();
  readonly #collected = new FinalizationRegistry<WeakRef<T>>((ref) => this.#refs.delete(ref));

  add(value: T): void {
    const ref = new WeakRef(value);
    this.#refs.add(ref);
    this.#collected.register(value, ref);
  }

  all(): readonly T[] {
    return [...this.#refs].flatMap((ref) => ref.deref() ?? []);
  }
}
