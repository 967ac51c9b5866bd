import { styleText } from 'node:util';
import { printable } from './control-characters.js';

type Style = Parameters<typeof styleText>[0];

const STYLES: Readonly<Record<string, Style>> = {
  trace: 'gray',
  debug: 'gray',
  info: 'cyan',
  warn: 'yellow',
  error: 'red',
  fatal: 'bgRed',
};

/** Fields that are shown elsewhere in the line, or are the same in every line of a server. */
const HIDDEN = new Set(['time', 'level', 'msg', 'service', 'version', 'pid', 'err']);

/** Formats a log line for a terminal: `14:05:09 info  file written  bytes=20`, then the stack. */
export function readable(line: string): string {
  const fields = parsed(line);
  if (fields === undefined) return line;
  const { time, level, msg = '', err } = fields as Record<string, string>;
  const rest = Object.entries(fields)
    .filter(([key]) => !HIDDEN.has(key))
    .map(([key, value]) => `${key}=${typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)}`);
  const stack = (err as { stack?: unknown } | undefined)?.stack;
  const head = [
    style('gray', String(time).slice(11, 19)),
    style(STYLES[String(level)] ?? 'gray', String(level).padEnd(5)),
    printable(msg),
    ...(rest.length > 0 ? ['', style('gray', printable(rest.join(' ')))] : []),
  ];
  return `${head.join(' ')}\n${typeof stack === 'string' ? `${printable(stack).replace(/^/gm, '    ')}\n` : ''}`;
}

/** Redaction can replace a number, and the line is then not JSON. */
function parsed(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** Uses colours if standard error is a terminal that supports them, and `NO_COLOR` is not set. */
function style(format: Style, text: string): string {
  return styleText(format, text, { stream: process.stderr });
}
